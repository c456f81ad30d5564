package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// crashAfter runs busyRules in a trace, with a crash after a number of effects of
// the step that does it all.
func crashAfter(t *testing.T, value int64, effects int) []trace.Record {
	t.Helper()
	sink := &records{}
	finish(t, sim.Config{
		Spec: probeSpec(busyRules), Process: process.Config{N: 3}, Trace: sink,
		Faults:   []sim.Fault{{Kind: sim.CrashInStep, At: 10 * ms, Effects: effects}},
		Workload: sim.Workload{Commands: []sim.Command{{At: 10 * ms, Kind: process.Load, Value: value}}},
	}, nil)
	return sink.list
}

// The record of a step contains the effects that a crash cut off, marked as such. If the
// step saves, its messages leave only after the save.
func TestCutEffectsAreMarked(t *testing.T) {
	const off, rest = " (cut off)", " f=0 ts=0 v=[]"
	first, timer, save := "1->2 NOTE n=1"+rest, "arm t 1000000..1000000", "save"
	all, decision := "1->all NOTE n=2"+rest, "decide 5"
	after2 := all + " (cut off after 2)"
	for _, c := range []struct {
		value   int64
		effects int
		want    []string
	}{
		{0, 0, []string{first + off, timer + off, all + off, decision + off}},
		{0, 1, []string{first, timer + off, all + off, decision + off}},
		{0, 2, []string{first, timer, all + off, decision + off}},
		{0, 3, []string{first, timer, after2, decision + off}},
		{0, 4, []string{first, timer, all, decision + off}},
		{0, 5, []string{first, timer, all, decision}},
		{1, 1, []string{first + off, timer + off, save + off, all + off, decision + off}},
		{1, 2, []string{first + off, timer, save + off, all + off, decision + off}},
		{1, 3, []string{first, timer, save, all + off, decision + off}},
		{1, 4, []string{first, timer, save, after2, decision + off}},
		{1, 6, []string{first, timer, save, all, decision}},
	} {
		for _, r := range crashAfter(t, c.value, c.effects) {
			if r.Kind != "load" {
				continue
			}
			c.want = append(c.want, "kept: 0 -> 7")
			if got := strings.Split(r.String(), "\n  ")[1:]; !slices.Equal(got, c.want) {
				t.Errorf("saving %d, after %d effects:\n%q, want\n%q", c.value, c.effects, got, c.want)
			}
		}
	}
}

// A message that waited for a Save that did not complete was never sent, so it is not
// counted.
func TestCutMessagesAreNotCounted(t *testing.T) {
	for effects, want := range []uint64{0, 0, 0, 1, 2, 3, 3} {
		result, err := sim.Run(sim.Config{
			Spec: probeSpec(busyRules), Process: process.Config{N: 3},
			Faults:   []sim.Fault{{Kind: sim.CrashInStep, At: 10 * ms, Effects: effects}},
			Workload: sim.Workload{Commands: []sim.Command{{At: 10 * ms, Kind: process.Load, Value: 1}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if sent := result.Sent(process.Protocol); sent != want {
			t.Errorf("after %d effects %d messages are counted, want %d", effects, sent, want)
		}
	}
}

// A choice was made within the step, whatever follows.
func TestChoicesAreNotCut(t *testing.T) {
	sink := &records{}
	finish(t, sim.Config{
		Spec: probeSpec(func(_ *probe, ev *process.Event, fx *process.Effects) {
			if ev.Kind == process.Load {
				fx.Choose(2)
				fx.Decide(1)
			}
		}),
		Process: process.Config{N: 2}, Trace: sink, Workload: sim.Workload{Commands: loads(0, ms)},
		Faults: []sim.Fault{{Kind: sim.CrashInStep, At: ms}},
	}, nil)
	for _, r := range sink.list {
		if r.Kind == "load" && (r.Effects[0].Cut || !r.Effects[1].Cut) {
			t.Errorf("a choice is cut off, or what follows is not:\n%s", &r)
		}
	}
}

// Every message that a trace does not mark as cut off ends in the trace. So a picture
// shows no message that is in flight forever.
func TestNothingCutIsDrawn(t *testing.T) {
	for value := range int64(2) {
		for effects := range 8 {
			run, sent, ended := crashAfter(t, value, effects), 0, 0
			for i := range run {
				if k := run[i].Kind; k == "deliver" || k == trace.Drop {
					ended++
				}
				for _, e := range run[i].Effects {
					switch {
					case e.Kind == "send" && !e.Cut:
						sent++
					case e.Kind == "broadcast" && e.Cut:
						sent += len(e.Reached)
					case e.Kind == "broadcast":
						sent += 2
					}
				}
			}
			if sent != ended {
				t.Errorf("saving %d, after %d effects: %d messages left, %d came to an end", value, effects, sent, ended)
			}
			if diagram := drawn(t, "mermaid", run); strings.Contains(diagram, "not arrived") || strings.Count(diagram, "->>") != ended {
				t.Errorf("saving %d, after %d effects: the diagram has other messages than arrived:\n%s", value, effects, diagram)
			}
		}
	}
}

func drawn(t *testing.T, format string, run []trace.Record) string {
	t.Helper()
	var b strings.Builder
	w, err := trace.NewFormatWriter(format, &b, trace.Header{Algorithm: "probe", Labels: []process.Label{1, 2, 3}})
	for i := range run {
		if err == nil {
			err = w.Write(&run[i])
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", format, err))
	}
	return b.String()
}
