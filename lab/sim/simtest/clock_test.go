package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/algorithm/clock/berkeley"
	"github.com/conclave-io/conclave/algorithm/clock/cristian"
	"github.com/conclave-io/conclave/algorithm/clock/lamport"
	"github.com/conclave-io/conclave/algorithm/clock/ntp"
	"github.com/conclave-io/conclave/algorithm/clock/vector"
	"github.com/conclave-io/conclave/algorithm/globalstate"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

func over(t *testing.T, top *process.Spec, below ...*process.Spec) *process.Spec {
	t.Helper()
	spec, err := stack.Over(top, below...)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestLogicalClocks runs the clocks alone, and below algorithms whose messages
// they stamp.
func TestLogicalClocks(t *testing.T) {
	for _, spec := range []*process.Spec{
		lamport.Spec, vector.Spec,
		over(t, ricartagrawala.Spec, lamport.Spec), over(t, ricartagrawala.Spec, vector.Spec),
		over(t, tokenring.Spec, vector.Spec, globalstate.Spec),
	} {
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				simtest.Plan{
					Spec: spec, Process: process.Config{N: n, Options: defaults(spec)},
					Adjust: func(cfg *sim.Config, _ uint64) { cfg.Limit.Until, cfg.Limit.Events = 200*process.Millisecond, 5_000 },
				}.Run(t)
			})
		}
	}
}

// defaults are the default values of the named options: the packages of the algorithms
// test the modes.
func defaults(spec *process.Spec) []process.OptionValue {
	options := []process.OptionValue{}
	for _, o := range spec.AllOptions() {
		if o.Values != nil {
			options = append(options, process.OptionValue{Name: o.Name, Value: o.Default})
		}
	}
	return options
}

// TestPhysicalClocks runs the algorithms that set clocks, with clocks that are
// wrong and drift, against the bound that follows from the delays and the drift.
func TestPhysicalClocks(t *testing.T) {
	for _, spec := range []*process.Spec{cristian.Spec, berkeley.Spec, ntp.Spec} {
		for _, n := range []int{1, 2, 5} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				right := 0
				simtest.Plan{
					Spec: spec, Process: process.Config{N: n},
					Judges: []sim.Judge{func(w *sim.World) sim.Watcher { return countRight(w, &right) }},
					Adjust: func(cfg *sim.Config, seed uint64) { wrongClocks(cfg, seed, spec) },
				}.Run(t)
				if n > 1 && right < 100 {
					t.Errorf("only %d clocks were right at the end", right)
				}
			})
		}
	}
}

// wrongClocks draws clocks that are off by up to 3 D and drift by up to 200 ppm. Rounds
// continue forever, so the run has a limit. The election of an oracle is part of the
// bound.
func wrongClocks(cfg *sim.Config, seed uint64, spec *process.Spec) {
	r := rand.New(rand.NewPCG(seed, 11))
	cfg.Limit = sim.Limit{Until: 1500 * process.Millisecond}
	cfg.Workload.Commands, cfg.Clocks = nil, nil
	for range cfg.Process.N {
		cfg.Clocks = append(cfg.Clocks, sim.Clock{Offset: process.Duration(r.Int64N(6_000_000) - 3_000_000), Drift: r.IntN(401) - 200})
	}
	if spec.Needs.Topology == process.Tree {
		cfg.Process.Topology.Parent = []func(int) []process.ID{process.Line, process.Star, process.BinaryTree}[r.IntN(3)](cfg.Process.N)
	}
}

// countRight counts the clocks that have worked in a correction at the end.
func countRight(w *sim.World, right *int) sim.Watcher {
	return sim.Watcher{Name: "count", Watch: func(*sim.Observation) string { return "" }, End: func() string {
		for p := range process.ID(w.Config().N) {
			if w.Synchronized(p) {
				*right++
			}
		}
		return ""
	}}
}
