package simtest_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

// elections are the algorithms that elect and do not say themselves that they fail.
func elections() []*process.Spec {
	var working []*process.Spec
	for _, spec := range algorithm.All {
		if spec.Family == process.Election && spec.Layers == nil && claims(spec, process.LeaderTermination) && claims(spec, process.LeaderValidity) {
			working = append(working, spec)
		}
	}
	return working
}

func claims(spec *process.Spec, property process.Property) bool {
	for _, c := range spec.Claims.Properties {
		if c.Property == property {
			return !c.Fails
		}
	}
	return false
}

// TestElectionsRecover asks the survivors of crashes for an election after the last
// fault. Then all follow the best live process, whatever happened before, and no more
// messages are sent.
func TestElectionsRecover(t *testing.T) {
	for _, spec := range elections() {
		if !spec.Survives(process.CrashAny, "") {
			continue
		}
		for _, n := range []int{2, 3, 4, 6} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				plan := simtest.Plan{Spec: spec, Process: process.Config{N: n, Labels: []process.Label{40, 10, 90, 20, 70, 30}[:n]}}
				var calls []sim.Command
				plan.Adjust = func(cfg *sim.Config, seed uint64) {
					calls = lastCalls(spec, n, seed)
					cfg.Workload.Commands = append(cfg.Workload.Commands, calls...)
				}
				plan.Judges = []sim.Judge{func(w *sim.World) sim.Watcher { return recovered(w, calls) }}
				plan.Run(t)
			})
		}
	}
}

// lastCalls asks one process after the other, long after everything else, each when
// the election of the one before is over. Loads are given before.
func lastCalls(spec *process.Spec, n int, seed uint64) []sim.Command {
	var calls []sim.Command
	long := process.Duration(1000*(n+1)) * process.Millisecond
	for i := range n {
		p := process.ID((i + int(seed)) % n)
		if spec.Needs.Load {
			calls = append(calls, sim.Command{Kind: process.Load, Process: p, At: long/2 + 1, Value: int64(seed>>uint(p)) & 1})
		}
		calls = append(calls, sim.Command{Kind: process.Campaign, Process: p, At: long + process.Duration(i)*long})
	}
	return calls
}

// recovered judges the end of a run in which a process was asked for an election after
// the last crash and restart.
func recovered(w *sim.World, calls []sim.Command) sim.Watcher {
	last := process.Duration(0)
	loads := make([]int64, w.Config().N)
	for p := range loads {
		loads[p] = 1 << 62
	}
	watch := func(o *sim.Observation) string {
		if o.Kind == sim.Crashed || o.Kind == sim.Restarted {
			last = w.Now()
		}
		return ""
	}
	end := func() string {
		called := false
		for _, c := range calls {
			up := !w.Status(c.Process).Down
			called = called || up && c.Kind == process.Campaign && c.At > last
			if c.Kind == process.Load && c.At < last {
				return "" // who knows a load and who does not depends on when it came back
			}
			if c.Kind == process.Load && up {
				loads[c.Process] = c.Value
			}
		}
		if reason, _ := w.Ended(); reason != sim.Quiet || !called {
			return ""
		}
		return wrongLeader(w, loads)
	}
	return sim.Watcher{Name: "recovery", Watch: watch, End: end}
}

// wrongLeader says who does not follow the best that is up.
func wrongLeader(w *sim.World, loads []int64) string {
	c, best := w.Config(), process.None
	for p := range process.ID(c.N) {
		if w.Status(p).Down {
			continue
		}
		if best == process.None || loads[p] < loads[best] || loads[p] == loads[best] && c.Label(p) > c.Label(best) {
			best = p
		}
	}
	for p, l := range w.Result().Leaders {
		if !w.Status(process.ID(p)).Down && l.Leader != best {
			return fmt.Sprintf("%s follows %s, but %s is the best", c.Text(process.ID(p)), c.Text(l.Leader), c.Text(best))
		}
	}
	return ""
}

// TestEverySubsetOfStarters runs every arrangement of the labels on a ring with every set
// of processes that start at once. There must be one leader, the right one, and all must
// know it.
func TestEverySubsetOfStarters(t *testing.T) {
	most := 5
	switch {
	case os.Getenv("LONG") != "":
		most = 6
	case testing.Short():
		most = 4
	}
	for _, spec := range elections() {
		for n := 1; n <= most; n++ {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				for order := range arrangements(n) {
					for starters := 1; starters < 1<<n; starters++ {
						elect(t, spec, order, starters)
					}
				}
			})
		}
	}
}

// arrangements yields every ring of n labels, once: rotations are the same ring.
func arrangements(n int) func(yield func([]process.ID) bool) {
	return func(yield func([]process.ID) bool) {
		order := make([]process.ID, n)
		for i := range order {
			order[i] = process.ID(i)
		}
		permute(order, 1, yield) // the place of the first does not matter on a ring
	}
}

func permute(order []process.ID, from int, yield func([]process.ID) bool) bool {
	if from >= len(order) {
		return yield(order)
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		if !permute(order, from+1, yield) {
			return false
		}
		order[from], order[i] = order[i], order[from]
	}
	return true
}

func elect(t *testing.T, spec *process.Spec, order []process.ID, starters int) {
	t.Helper()
	n := len(order)
	cfg := sim.Config{Spec: spec, Process: process.Config{N: n, Topology: process.Topology{Successor: process.Ring(order...)}}}
	for p := range process.ID(n) {
		if spec.Needs.Load { // the order of the loads is not that of the labels
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Kind: process.Load, Process: p, Value: int64(p % 3)})
		}
		if starters>>p&1 == 1 {
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Kind: process.Campaign, Process: p, At: 1})
		}
	}
	result, err := sim.Run(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Violations) > 0 || result.Reason != sim.Quiet || len(result.Leaders) != n {
		t.Fatalf("ring %v, starters %b: %v, ended by %s", order, starters, result.Violations, result.Reason)
	}
}
