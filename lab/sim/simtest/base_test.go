package simtest_test

import (
	"runtime"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// rising runs an instance in which each process enters twice, one after the other, and
// then nothing happens. All fences must be larger than the given one.
func rising(t *testing.T, spec *process.Spec, base process.Base, below process.Fence) *sim.World {
	t.Helper()
	const n = 3
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n, Delay: ms, Section: ms, Base: base},
		Limit: sim.Limit{Until: 1000 * ms},
	}
	if spec.Needs.Topology == process.Quorums {
		cfg.Process.Topology.Quorums = process.VotingSets(n)
	}
	for i := range 2 * n {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
			At: process.Duration(1+100*i) * ms, Process: process.ID(i % n), Kind: process.Acquire})
	}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), func(*sim.World) sim.Watcher {
		return sim.Watcher{Name: "base", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Entered && o.Fence <= below {
				return "fence " + o.Fence.String() + " is not above " + below.String()
			}
			return ""
		}}
	})
	w, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for w.Step() {
	}
	if r := w.Result(); len(r.Violations) > 0 || r.Entries != 2*n {
		t.Errorf("base %+v: %v, %d entries", base, r.Violations, r.Entries)
	}
	return w
}

// TestBase: machines of a new instance continue above the numbers that earlier ones used.
// If those were idle and could be forgotten, the largest number that any of them used is
// enough.
func TestBase(t *testing.T) {
	forgotten, listed, ran := 0, 0, 0
	for _, spec := range algorithm.All {
		grow := claims(spec, process.FencesGrow) || claims(spec, process.FencesGrowCausally)
		if !grow || !claims(spec, process.Progress) {
			continue
		}
		listed++
		t.Run(spec.Name, func(t *testing.T) {
			ran++
			first := rising(t, spec, process.Base{Clock: 70, Fence: 7}, 7)
			var next process.Base
			var highest process.Fence
			for p := range process.ID(first.Config().N) {
				if m, ok := first.Machine(p).(process.Idler); !ok || !m.Idle() {
					return
				}
				used := process.HighWater(first.Machine(p))
				next.Clock, next.Fence = max(next.Clock, used.Clock), max(next.Fence, used.Fence)
				highest = max(highest, first.Status(p).Fence)
			}
			forgotten++
			rising(t, spec, next, highest)
		})
	}
	if ran == listed && forgotten < 5 { // -run may select some
		t.Errorf("only %d algorithms were idle after the entries", forgotten)
	}
}

// TestEntriesAllocateNothing: once a run has its size, no step of these algorithms
// allocates.
func TestEntriesAllocateNothing(t *testing.T) {
	for _, spec := range []*process.Spec{raymond.Spec, suzukikasami.Spec, ricartagrawalatoken.Spec, tokenring.Spec, majority.Spec} {
		for _, mode := range spec.Modes() {
			cfg := sim.Config{
				Spec: spec, Process: process.Config{N: 12, Delay: ms, Section: ms},
				Workload: sim.Workload{Regime: sim.Saturated}, Limit: sim.Limit{Until: 1 << 59},
				Judges: []sim.Judge{},
			}
			if mode != "" {
				cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
			}
			w, err := sim.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			steps(t, w, 20_000)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			steps(t, w, 10_000)
			runtime.ReadMemStats(&after)
			// The collector and the testing package have a few of their own.
			if n := after.Mallocs - before.Mallocs; n > 20 {
				t.Errorf("%s, mode %q: %d allocations in 10,000 events", spec.Name, mode, n)
			}
		}
	}
}

func steps(t *testing.T, w *sim.World, n int) {
	t.Helper()
	for range n {
		if !w.Step() {
			t.Fatalf("the run is over: %v", w.Result().Violations)
		}
	}
}
