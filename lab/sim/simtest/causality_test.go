package simtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// TestTraceAgreesWithVectorClocks: a trace orders two records as the vector clocks of the
// processes do.
func TestTraceAgreesWithVectorClocks(t *testing.T) {
	const n = 4
	c := trace.NewCausality()
	times := &times{Causality: c}
	cfg := sim.Config{
		Spec: vector.Spec, Process: process.Config{N: n}, Seed: 3, Trace: times,
		Links: sim.Links{Link: sim.Link{Delay: sim.Exponential(0, process.Millisecond), Unordered: true}},
	}
	for i := range 60 {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
			Kind: process.Propose, Process: process.ID(i * 7 % n), At: process.Duration(i) * process.Millisecond / 3, Value: int64(i * 5 % (n + 2)),
		})
	}
	result, err := sim.Run(cfg)
	if err != nil || len(result.Violations) > 0 {
		t.Fatal(err, result.Violations)
	}
	if len(times.ids) < 80 {
		t.Fatalf("only %d events", len(times.ids))
	}
	for i, a := range times.ids {
		for j, b := range times.ids {
			if smaller := below(times.vectors[i], times.vectors[j]); c.Before(a, b) != smaller {
				t.Errorf("record %d at %v and %d at %v: before is %v", a, times.vectors[i], b, times.vectors[j], c.Before(a, b))
			}
		}
	}
}

// times is a sink that also notes what the clocks showed after each event.
type times struct {
	*trace.Causality
	ids     []uint64
	vectors [][]int
}

func (s *times) Write(r *trace.Record) error {
	for _, change := range r.Changes {
		if change.Field != "V" {
			continue
		}
		var v []int
		for _, text := range strings.Fields(strings.Trim(change.After, "[]")) {
			n := 0
			if _, err := fmt.Sscan(text, &n); err != nil {
				return err
			}
			v = append(v, n)
		}
		s.ids, s.vectors = append(s.ids, r.ID), append(s.vectors, v)
	}
	return s.Causality.Write(r)
}

func below(a, b []int) bool {
	differ := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		differ = differ || a[i] < b[i]
	}
	return differ
}
