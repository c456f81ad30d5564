package simtest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

// TestAlgorithms runs every algorithm in each of its modes under the faults that
// it claims to survive there. Each of these faults happens.
func TestAlgorithms(t *testing.T) {
	for _, spec := range algorithm.All {
		for _, n := range sizes(spec) {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				plan := simtest.Plan{Spec: spec, Process: process.Config{N: n}}
				switch {
				case spec.Needs.Topology == process.Quorums:
					votersOfNobody(&plan)
				case spec == majority.Spec:
					fewCoordinators(&plan)
				case spec == lease.Redlock:
					plan.MayCrash = mostServersUp
				case spec.Lies != nil:
					byzantine(&plan, 1)
				case spec == superpeer.Spec:
					// One segment, or so few nodes would all be super-peers and silent.
					plan.Process.Options = []process.OptionValue{option("prefix", 0)}
				}
				plan.Run(t)
			})
		}
	}
}

// sizes leaves out large runs of algorithms that send messages forever, and sizes
// that are too small for a traitor.
func sizes(spec *process.Spec) []int {
	if spec.Family == process.Detector || spec.Family == process.ClockSync || spec.Layers != nil || spec == raft.Spec {
		return []int{1, 2, 3, 5}
	}
	if spec.Lies != nil {
		return []int{1, 2, 5, 8} // one traitor among three is one too many
	}
	return []int{1, 2, 3, 5, 8}
}

// votersOfNobody lets a process ask only if it does not need the vote of one chosen
// process. That process may crash, and so may every process that is not asked.
func votersOfNobody(plan *simtest.Plan) {
	n := plan.Process.N
	quorums := process.VotingSets(n)
	plan.Process.Topology.Quorums = quorums
	var clients []process.ID
	plan.Adjust = func(cfg *sim.Config, seed uint64) {
		clients = nil
		for p := range process.ID(n) {
			if seed%2 == 0 || !slices.Contains(quorums[p], process.ID(seed/2)%process.ID(n)) {
				clients = append(clients, p)
			}
		}
		load := &cfg.Workload
		if load.Regime != sim.Listed {
			load.Clients = clients
		}
		load.Commands = slices.DeleteFunc(load.Commands, func(c sim.Command) bool { return !slices.Contains(clients, c.Process) })
	}
	plan.MayCrash = func(_ *sim.World, p process.ID) bool {
		return !slices.ContainsFunc(clients, func(q process.ID) bool { return slices.Contains(quorums[q], p) })
	}
}

// mostServersUp reports whether a majority of Redlock's servers is left without p.
func mostServersUp(w *sim.World, p process.ID) bool {
	servers := lease.Servers(w.Config())
	down := 0
	for q := range servers {
		if w.Status(process.ID(q)).Down {
			down++
		}
	}
	return int(p) >= servers || 2*(down+1) < servers
}

// fewCoordinators keeps enough coordinators up. Without leases, only processes that have
// never asked may crash, because a vote may be in flight to the others. With leases,
// mutual exclusion holds as long as no client is paused.
func fewCoordinators(plan *simtest.Plan) {
	var asked process.Set
	leases := false
	plan.Judges = []sim.Judge{func(w *sim.World) sim.Watcher {
		asked = process.NewSet(plan.Process.N)
		return sim.Watcher{Name: "who asked", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Requested {
				asked.Add(o.Process)
			}
			return ""
		}}
	}}
	plan.Adjust = func(cfg *sim.Config, seed uint64) {
		if leases = majority.Spec.Mode(&cfg.Process) == "lease"; leases && seed%4 < 2 {
			cfg.Faults = nil
			cfg.Judges = []sim.Judge{sim.AtMost(1), sim.FencesGrow}
		}
	}
	plan.MayCrash = func(w *sim.World, p process.ID) bool {
		coordinators, votes := majority.Sizes(w.Config())
		down := 0
		for q := range coordinators {
			if w.Status(process.ID(q)).Down {
				down++
			}
		}
		return (int(p) >= coordinators || down < coordinators-votes) && (leases || !asked.Has(p))
	}
}
