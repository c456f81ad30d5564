package measure

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/trace"
)

// TransactionCost is the cost of one transaction.
type TransactionCost struct {
	Messages uint64  // of the protocol, without acknowledgements
	All      uint64  // messages of all classes
	Time     float64 // in D: from the votes to the last decision
	Writes   int     // how often a process saved its state
}

// Transaction measures one transaction among n processes that all vote yes at the same moment. It
// returns an error if the algorithm broke a claim or a process did not commit.
func Transaction(spec *process.Spec, n int, options []process.OptionValue) (TransactionCost, error) {
	cfg, last := vote(spec, n, options)
	writes := &saves{}
	cfg.Trace = writes
	result, err := sim.Run(cfg)
	if err != nil {
		return TransactionCost{}, err
	}
	if len(result.Violations) > 0 || last.decided != n {
		return TransactionCost{}, fmt.Errorf("%s with n = %d: %d decisions, violations %v", spec.Name, n, last.decided, result.Violations)
	}
	cost := TransactionCost{Messages: result.Sent(process.Protocol), Time: inDelays(last.at - voteAt), Writes: writes.count}
	for class := process.Protocol; class <= process.Recovery; class++ {
		cost.All += result.Sent(class)
	}
	return cost, nil
}

// Blocked measures how long, in D, a crash of the coordinator blocks the others. It crashes when all
// have voted yes and no other process knows that, and restarts later. The time is from the crash to
// the last decision of a process that did not crash.
func Blocked(spec *process.Spec, n int, options []process.OptionValue, down process.Duration) (float64, error) {
	cfg, last := vote(spec, n, options)
	crash := voteAt + 3*delay/2
	cfg.Faults = []sim.Fault{{At: crash, Kind: sim.Crash, Process: 0, For: down}}
	last.ignore = 1
	result, err := sim.Run(cfg)
	if err != nil {
		return 0, err
	}
	if len(result.Violations) > 0 || last.decided != n-1 {
		return 0, fmt.Errorf("%s with n = %d, coordinator down for %d: %d decisions, violations %v", spec.Name, n, down, last.decided, result.Violations)
	}
	return inDelays(last.at - crash), nil
}

const (
	delay  = process.Millisecond
	voteAt = 2 * delay
)

func inDelays(d process.Duration) float64 { return float64(d) / float64(delay) }

// vote returns a run in which all processes vote yes, and the recorder of the decisions.
func vote(spec *process.Spec, n int, options []process.OptionValue) (sim.Config, *decisions) {
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n, Delay: delay, Options: options},
		Limit: sim.Limit{Until: 10_000 * delay},
	}
	for p := range process.ID(n) {
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: voteAt, Process: p, Kind: process.Propose, Value: process.Commit})
	}
	last := &decisions{}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), last.judge)
	return cfg, last
}

// decisions records how many processes have decided, and when the last one did.
type decisions struct {
	ignore  process.ID // processes of lower ranks are not counted
	decided int
	at      process.Duration
}

func (d *decisions) judge(w *sim.World) sim.Watcher {
	return sim.Watcher{Name: "decisions", Watch: func(o *sim.Observation) string {
		if o.Kind == sim.Decided && o.Process >= d.ignore {
			d.decided, d.at = d.decided+1, w.Now()
		}
		return ""
	}}
}

// saves counts how often machines save.
type saves struct{ count int }

func (s *saves) Write(r *trace.Record) error {
	for i := range r.Effects {
		if r.Effects[i].Kind == process.EffectSave.String() {
			s.count++
		}
	}
	return nil
}
