package measure

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/transaction/paxoscommit"
	"github.com/conclave-io/conclave/algorithm/transaction/threephase"
	"github.com/conclave-io/conclave/algorithm/transaction/twophase"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// TestTransactionsCostWhatTheSpecsSay measures a commit at every size that costs little.
func TestTransactionsCostWhatTheSpecsSay(t *testing.T) {
	mode := func(value string) []process.OptionValue { return []process.OptionValue{{Name: "mode", Value: value}} }
	faults := func(f string) []process.OptionValue { return []process.OptionValue{{Name: "f", Value: f}} }
	for _, test := range []struct {
		spec    *process.Spec
		mode    string
		options []process.OptionValue
		f       int
	}{
		{twophase.Spec, "presumed-abort", nil, 0},
		{twophase.Spec, "presumed-nothing", mode("presumed-nothing"), 0},
		{threephase.Spec, "", nil, 0},
		{paxoscommit.Spec, "", faults("0"), 0},
		{paxoscommit.Spec, "", faults("1"), 1},
		{paxoscommit.Spec, "", faults("2"), 2},
	} {
		for _, n := range []int{2, 3, 4, 5, 8, 13, 30} {
			got, err := transaction(test.spec, n, test.options)
			if err != nil {
				t.Fatal(err)
			}
			for metric, measured := range map[process.Metric]float64{
				process.MessagesPerDecision: float64(got.Messages), process.MessageCount: float64(got.All),
				process.DecisionTime: got.Time, process.LogWrites: float64(got.Writes),
			} {
				formula := said(t, test.spec, metric, process.AllStart, test.mode)
				if formula == nil {
					t.Fatalf("%s says nothing of %s", test.spec.Name, metric)
				}
				if want := formula.Eval(process.Params{N: n, F: test.f}); measured != want {
					t.Errorf("%s %s, N = %d: %s %v, theory %v", test.spec.Name, test.mode, n, metric, measured, want)
				}
			}
		}
	}
}

// TestBlocking measures how long participants wait for a coordinator that has crashed:
// in two-phase commit until it is back and they ask it. They ask every 8 D, and the first
// question is lost: it is addressed to the process as it was before the crash. In
// three-phase commit they decide as soon as they are told of the crash, and in Paxos Commit
// when the first of them has waited long enough and asked a majority.
func TestBlocking(t *testing.T) {
	for _, test := range []struct {
		spec *process.Spec
		most func(down float64) float64
	}{
		{twophase.Spec, func(down float64) float64 { return down + 2*8 + 2 }},
		{threephase.Spec, func(float64) float64 { return 5 + 3 }},    // detection, STATE-REQ, STATE, DECISION
		{paxoscommit.Spec, func(float64) float64 { return 2*8 + 5 }}, // timer, RECOVER to DECISION
	} {
		for _, down := range []process.Duration{10, 20, 100, 1000} {
			blocked, err := blocked(test.spec, 4, nil, down*delay)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: down for %d D, blocked for %v D", test.spec.Name, down, blocked)
			if blocked > test.most(float64(down)) || test.spec == twophase.Spec && blocked < float64(down) {
				t.Errorf("%s: down for %d D, blocked for %v D", test.spec.Name, down, blocked)
			}
		}
	}
}

// transactionCost is the cost of one transaction.
type transactionCost struct {
	Messages uint64  // of the protocol, without acknowledgements
	All      uint64  // messages of all classes
	Time     float64 // in D: from the votes to the last decision
	Writes   int     // how often a process saved its state
}

// transaction measures one transaction among n processes that all vote yes at the same moment. It
// returns an error if the algorithm broke a claim or a process did not commit.
func transaction(spec *process.Spec, n int, options []process.OptionValue) (transactionCost, error) {
	cfg, last := vote(spec, n, options)
	writes := &saves{}
	cfg.Trace = writes
	result, err := sim.Run(cfg)
	if err != nil {
		return transactionCost{}, err
	}
	if len(result.Violations) > 0 || last.decided != n {
		return transactionCost{}, fmt.Errorf("%s with n = %d: %d decisions, violations %v", spec.Name, n, last.decided, result.Violations)
	}
	cost := transactionCost{Messages: result.Sent(process.Protocol), Time: inDelays(last.at - voteAt), Writes: writes.count}
	for class := process.Protocol; class <= process.Recovery; class++ {
		cost.All += result.Sent(class)
	}
	return cost, nil
}

// blocked measures how long, in D, a crash of the coordinator blocks the others. It crashes when all
// have voted yes and no other process knows that, and restarts later. The time is from the crash to
// the last decision of a process that did not crash.
func blocked(spec *process.Spec, n int, options []process.OptionValue, down process.Duration) (float64, error) {
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
