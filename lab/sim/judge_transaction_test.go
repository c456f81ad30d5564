package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// TestOutcomesAreJudged lets processes 1 and 2 vote, and decide at once what a case says.
func TestOutcomesAreJudged(t *testing.T) {
	type outcomes = map[process.ID][]int64
	const yes, no, commit, abort = process.Commit, process.Abort, process.Commit, process.Abort
	for _, test := range []struct {
		name    string
		judge   sim.Judge
		votes   []int64
		decides outcomes
		crash   bool
		want    string
	}{
		{"the same", sim.JudgeOf(process.Atomicity), []int64{yes, no}, outcomes{0: {abort}, 1: {abort}}, false, ""},
		{"not the same", sim.JudgeOf(process.Atomicity), []int64{yes, yes}, outcomes{0: {commit}, 1: {abort}}, false, "2 aborted: 1 committed"},
		{"not what a dead one did", sim.JudgeOf(process.Atomicity), []int64{yes, yes}, outcomes{0: {commit}, 1: {abort}}, true, "2 aborted: 1 committed"},
		{"twice", sim.JudgeOf(process.StableDecision), []int64{yes}, outcomes{0: {abort, abort}}, false, ""},
		{"changed", sim.JudgeOf(process.StableDecision), []int64{yes}, outcomes{0: {commit, abort}}, false, "1 aborted after it had committed"},
		{"a no", sim.JudgeOf(process.UnanimousCommit), []int64{no, yes}, outcomes{1: {commit}}, false, "2 committed: 1 voted no"},
		{"too early", sim.JudgeOf(process.UnanimousCommit), []int64{yes, yes}, outcomes{0: {commit}}, false, "1 committed: 2 has not voted"},
		{"all yes", sim.JudgeOf(process.UnanimousCommit), []int64{yes, yes}, outcomes{1: {commit}}, false, ""},
		{"for nothing", sim.JudgeOf(process.NonTriviality), []int64{yes, yes}, outcomes{1: {abort}}, false, "2 aborted: everybody voted yes, and nothing had failed"},
		{"for a no", sim.JudgeOf(process.NonTriviality), []int64{no, yes}, outcomes{1: {abort}}, false, ""},
		{"for a crash", sim.JudgeOf(process.NonTriviality), []int64{yes, yes}, outcomes{1: {abort}}, true, ""},
		{"undecided", sim.JudgeOf(process.RepairTermination), []int64{yes, yes}, outcomes{1: {commit}}, false, "1 voted and never decided: everybody is up, and no event is enabled"},
		{"undecided beside a dead one", sim.JudgeOf(process.RepairTermination), []int64{yes, yes}, nil, true, ""},
		{"blocked", sim.JudgeOf(process.NonBlocking), []int64{yes, yes}, nil, true, "2 voted and never decided: no event is enabled"},
		{"not blocked", sim.JudgeOf(process.NonBlocking), []int64{yes, yes}, outcomes{1: {abort}}, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
				if ev.Kind == process.Propose {
					for _, outcome := range test.decides[m.self] {
						fx.Decide(outcome)
					}
				}
			})
			spec.Family = process.Transaction
			cfg := sim.Config{Spec: spec, Process: process.Config{N: 2}, Judges: []sim.Judge{test.judge}}
			for p, vote := range test.votes {
				cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{
					At: process.Duration(p+1) * 2 * ms, Process: process.ID(p), Kind: process.Propose, Value: vote,
				})
			}
			if test.crash {
				cfg.Faults = []sim.Fault{{At: 3 * ms, Kind: sim.Crash, Process: 0}}
			}
			checkVerdict(t, run(t, cfg), test.want)
		})
	}
}
