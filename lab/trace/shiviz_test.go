package trace_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// logged is an event as ShiViz parses it.
type logged struct {
	id    uint64
	host  string
	clock map[string]int
}

// parseShiViz reads a log with the expression in its first line, as ShiViz does.
func parseShiViz(t *rapid.T, log string) []logged {
	first, rest, _ := strings.Cut(log, "\n")
	parser, err := regexp.Compile(first)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(rest, "\n") {
		t.Fatal("the second line separates executions, there is only one")
	}
	var events []logged
	for _, match := range parser.FindAllStringSubmatch(rest, -1) {
		event := logged{host: match[parser.SubexpIndex("host")]}
		if event.id, err = strconv.ParseUint(match[parser.SubexpIndex("id")], 10, 64); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(match[parser.SubexpIndex("clock")]), &event.clock); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

// hostOf returns the host of a record in a log. Events in the network have a host of their own,
// because no process learns of them.
func hostOf(r *trace.Record) string {
	switch r.Kind {
	case "drop", "duplicate", "partition", "heal":
		return "network"
	}
	return strconv.FormatUint(uint64(r.Process), 10)
}

// before computes which records happened before which others, along causes and along the records of
// each host.
func before(run []trace.Record) [][]bool {
	reach := make([][]bool, len(run))
	last := map[string]int{}
	for i := range run {
		reach[i] = make([]bool, len(run))
		var sources []int
		if run[i].Cause > 0 {
			sources = append(sources, int(run[i].Cause-1))
		}
		if j, known := last[hostOf(&run[i])]; known {
			sources = append(sources, j)
		}
		last[hostOf(&run[i])] = i
		for _, j := range sources {
			reach[i][j] = true
			for k := range j {
				reach[i][k] = reach[i][k] || reach[j][k]
			}
		}
	}
	return reach
}

// less compares two vector clocks.
func less(a, b map[string]int) bool {
	smaller := false
	for host, n := range a {
		if n > b[host] {
			return false
		}
	}
	for host, n := range b {
		smaller = smaller || a[host] < n
	}
	return smaller
}

func TestShiVizClocksAreHappenedBefore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		run := anyRun(t)
		log, err := picture("shiviz", anyHeader, run)
		if err != nil {
			t.Fatal(err)
		}
		events := parseShiViz(t, log)
		if len(events) != len(run) {
			t.Fatalf("%d events of %d records are read", len(events), len(run))
		}
		reach, own := before(run), map[string]int{}
		for i, event := range events {
			if own[event.host]++; event.id != run[i].ID || event.host != hostOf(&run[i]) || event.clock[event.host] != own[event.host] {
				t.Fatalf("record %d became %+v, number %d of its host", run[i].ID, event, own[event.host])
			}
			for j := range i {
				if less(events[j].clock, event.clock) != reach[i][j] {
					t.Fatalf("happened-before from %d to %d is %v, the clocks are %v and %v",
						j+1, i+1, reach[i][j], events[j].clock, event.clock)
				}
				if less(event.clock, events[j].clock) {
					t.Fatalf("record %d comes before %d", i+1, j+1)
				}
			}
		}
	})
}

// A vector needs one number per process. It is needed only when a host learns from another host.
func TestShiVizIsBounded(t *testing.T) {
	h := trace.Header{Labels: make([]process.Label, 1<<20)}
	for i := range h.Labels {
		h.Labels[i] = process.Label(i)
	}
	var run []trace.Record
	for i := range 10 {
		run = append(run, trace.Record{ID: uint64(i + 1), Cause: uint64(i), Process: 1, Kind: "fire"})
	}
	if _, err := picture("shiviz", h, run); err != nil {
		t.Error(err)
	}
	for i := range run {
		run[i].Process = process.Label(i)
	}
	const want = "record 8: too long for a ShiViz log of 1048576 processes; end the run sooner"
	if _, err := picture("shiviz", h, run); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, it should say %q", err, want)
	}
}
