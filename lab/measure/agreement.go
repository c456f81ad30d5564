package measure

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// AgreementCost is the cost of one decision.
type AgreementCost struct {
	Messages uint64  // of the protocol
	Time     float64 // in D: from the proposals to the last decision
}

// Agreement measures one decision among n processes. If the algorithm needs a leader, the leader
// is known from the start. With all, all processes propose at the same moment; otherwise only the
// leader does, or the commander of the generals. It returns an error if the algorithm broke a claim
// or a process did not decide.
func Agreement(spec *process.Spec, n int, options []process.OptionValue, all bool) (AgreementCost, error) {
	const d = process.Millisecond
	leader := process.ID(n - 1)
	if spec.Needs.Topology == process.Centre || spec.Needs.Topology == process.Commander {
		leader = 0
	}
	start := 2 * d
	if spec.Needs.Synchrony {
		start = 0 // the rounds start when the processes start
	}
	var commands []sim.Command
	for p := range process.ID(n) {
		if spec.Needs.Elector {
			commands = append(commands, sim.Command{At: d, Process: p, Kind: process.Elected, Peer: leader, Term: process.MakeTerm(1, leader)})
		}
		if all || p == leader {
			commands = append(commands, sim.Command{At: start, Process: p, Kind: process.Propose, Value: int64(p) + 1})
		}
	}
	decided, last := process.NewSet(n), process.Duration(0)
	count := func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "decisions", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Decided {
				decided.Add(o.Process)
				last = w.Now()
			}
			return ""
		}}
	}
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n, Delay: d, Options: options},
		Workload: sim.Workload{Commands: commands},
	}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), count)
	result, err := sim.Run(cfg)
	if err != nil {
		return AgreementCost{}, err
	}
	if len(result.Violations) > 0 || decided.Len() != n {
		return AgreementCost{}, fmt.Errorf("%s with n = %d: %d have decided, violations %v", spec.Name, n, decided.Len(), result.Violations)
	}
	return AgreementCost{Messages: result.Sent(process.Protocol), Time: float64(last-start) / float64(d)}, nil
}
