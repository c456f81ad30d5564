package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/stack/deadlocks"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func declare(ask string) []process.OptionValue {
	return []process.OptionValue{{Name: "mode", Value: "declare"}, {Name: "ask", Value: ask}}
}

// TestDetectionIsProved: within these bounds, every declared deadlock exists, every
// deadlock is found and, if victims give up, all processes enter. The number of states is
// exact.
func TestDetectionIsProved(t *testing.T) {
	two, both := []process.ID{0, 1}, []process.OptionValue{{Name: "ask", Value: "2"}}
	for _, test := range []struct {
		spec     *process.Spec
		n        int
		entries  int
		asks     []process.ID
		options  []process.OptionValue
		timing   check.Timing
		timeouts int
		live     bool
		states   uint64
	}{
		{deadlocks.WaitForGraph, 3, 1, nil, declare("1"), check.AsNeeded, 0, false, 225},
		{deadlocks.WaitForGraph, 2, 1, nil, declare("1"), check.AnyTime, 5, false, 1585},
		{deadlocks.WaitForGraph, 3, 1, two, declare("2"), check.AnyTime, 2, false, 102205},
		{deadlocks.WaitForGraph, 3, 1, nil, nil, check.AsNeeded, 0, true, 277},
		{deadlocks.WaitForGraph, 3, 1, nil, both, check.AsNeeded, 0, false, 9496},
		{deadlocks.EdgeChasing, 3, 1, nil, declare("1"), check.AnyTime, 0, false, 4343},
		{deadlocks.EdgeChasing, 3, 1, nil, nil, check.AsNeeded, 0, true, 243},
		{deadlocks.EdgeChasing, 3, 1, nil, nil, check.AnyTime, 3, false, 19988},
		{deadlocks.EdgeChasing, 3, 1, nil, both, check.AsNeeded, 0, true, 11787},
		{deadlocks.Diffusion, 2, 1, nil, declare("1"), check.AnyTime, 4, false, 251},
		{deadlocks.Diffusion, 3, 1, nil, nil, check.AsNeeded, 0, true, 17338},
		{deadlocks.MaekawaEdgeChasing, 3, 1, nil, nil, check.AsNeeded, 0, true, 467},
		{deadlocks.MaekawaEdgeChasing, 3, 2, nil, nil, check.AsNeeded, 0, true, 12896},
		{deadlocks.MaekawaEdgeChasing, 4, 1, []process.ID{0, 1, 2}, nil, check.AsNeeded, 0, false, 25715},
		{algorithm.Find("bully+wait-for-graph"), 2, 1, nil, nil, check.AsNeeded, 0, false, 103},
		{algorithm.Find("chang-roberts+wait-for-graph"), 3, 1, nil, nil, check.AsNeeded, 0, false, 270},
	} {
		r := searched(t, check.Config{
			Spec: test.spec, Process: process.Config{N: test.n, Options: test.options}, Entries: test.entries,
			Requesters: test.asks, Timing: test.timing, Timeouts: test.timeouts, Liveness: test.live,
		})
		if r.Verdict != check.Proved || r.States != test.states {
			t.Errorf("%s %v: %s, %d states, want %d", test.spec.Name, test.options, r.Sentence(), r.States, test.states)
		}
	}
}

// TestTwoCycles: if cycles share processes, edge chasing can choose one victim too many,
// as its claim says. The shortest such run has 15 steps.
func TestTwoCycles(t *testing.T) {
	if testing.Short() {
		t.Skip("searches 800,000 states")
	}
	r := searched(t, check.Config{
		Spec: deadlocks.EdgeChasing, Process: process.Config{N: 3, Options: []process.OptionValue{{Name: "ask", Value: "2"}}},
		Timing: check.AnyTime, Timeouts: 3,
	})
	if r.Verdict != check.Violated || r.Broken.Property != process.NoPhantom || len(r.Path.Steps) != 15 {
		t.Fatalf("%s, want a phantom after 15 steps", r.Sentence())
	}
	replayed(t, r)
}
