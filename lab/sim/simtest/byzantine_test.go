package simtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/algorithm/agreement/generals"
	"github.com/conclave-io/conclave/algorithm/agreement/phaseking"
	"github.com/conclave-io/conclave/algorithm/agreement/signedgenerals"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

// TestTwoTraitors runs the algorithms with every pair of traitors, with one traitor and a
// crash, and with two crashes.
func TestTwoTraitors(t *testing.T) {
	for _, test := range []struct {
		spec *process.Spec
		n    int
	}{{generals.Spec, 7}, {generals.Consistency, 7}, {signedgenerals.Spec, 4}, {signedgenerals.Spec, 7}, {phaseking.Spec, 9}} {
		t.Run(fmt.Sprintf("%s/n=%d", test.spec.Name, test.n), func(t *testing.T) {
			t.Parallel()
			plan := simtest.Plan{Spec: test.spec, Process: process.Config{N: test.n, Options: []process.OptionValue{option("m", 2)}}}
			byzantine(&plan, 2)
			plan.Run(t)
		})
	}
}

// byzantine makes up to m processes traitors or lets them crash, if there are enough
// others. In a third of the schedules, all propose the same value.
func byzantine(plan *simtest.Plan, m int) {
	n, traitors := plan.Process.N, 0
	if n <= 2 {
		m = 0
	}
	plan.Adjust = func(cfg *sim.Config, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 11))
		traitors = m - int(seed)%(m+1)
		sets := check.AnyTraitors(n, traitors)
		cfg.Traitors = sets[int(seed)/(m+1)%len(sets)]
		same, all := r.Int64N(2), r.IntN(3) == 0
		for i := range cfg.Workload.Commands {
			cfg.Workload.Commands[i].Value = same
			if !all {
				cfg.Workload.Commands[i].Value = r.Int64N(2)
			}
		}
	}
	plan.MayCrash = func(w *sim.World, p process.ID) bool {
		faulty := traitors
		for q := range process.ID(n) {
			if s := w.Status(q); q != p && (s.Down || s.Incarnation > 1) {
				faulty++
			}
		}
		return faulty < m
	}
}
