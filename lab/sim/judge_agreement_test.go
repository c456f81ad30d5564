package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// TestDecisionsAreJudged lets processes 1 and 2 propose 1 and 2, and decide what a case
// says. The first decides once, the second a sequence.
func TestDecisionsAreJudged(t *testing.T) {
	for _, test := range []struct {
		name    string
		judge   sim.Judge
		once    bool
		decides map[process.ID][]int64
		want    string
	}{
		{"the same", sim.JudgeOf(process.ValueAgreement), true, map[process.ID][]int64{0: {1}, 1: {1}}, ""},
		{"not the same", sim.JudgeOf(process.ValueAgreement), true, map[process.ID][]int64{0: {1}, 1: {2}}, "2 decided 2: another process decided 1"},
		{"not the same later", sim.JudgeOf(process.ValueAgreement), false, map[process.ID][]int64{0: {1, 2}, 1: {1, 1}}, "2 decided 1 in place 2: another process decided 2 there"},
		{"one is behind", sim.JudgeOf(process.ValueAgreement), false, map[process.ID][]int64{0: {1, 2}, 1: {1}}, ""},
		{"proposed by another", sim.JudgeOf(process.ValueValidity), true, map[process.ID][]int64{0: {1}, 1: {1}}, ""},
		{"proposed by nobody", sim.JudgeOf(process.ValueValidity), true, map[process.ID][]int64{0: {7}}, "1 decided 7, which nobody proposed"},
		{"twice", sim.JudgeOf(process.DecideOnce), true, map[process.ID][]int64{0: {1, 1}}, "1 decided 1 after it had decided"},
		{"once", sim.JudgeOf(process.DecideOnce), true, map[process.ID][]int64{0: {1}, 1: {2}}, ""},
		{"one does not decide", sim.JudgeOf(process.Decision), true, map[process.ID][]int64{0: {1}}, "2 never decided: no event is enabled"},
		{"nobody does", sim.JudgeOf(process.Decision), true, nil, "1, 2 never decided: no event is enabled"},
		{"another value is an answer", sim.JudgeOf(process.Decision), true, map[process.ID][]int64{0: {1}, 1: {1}}, ""},
		{"another value is no answer", sim.JudgeOf(process.Decision), false, map[process.ID][]int64{0: {1}, 1: {1}}, "2 never decided: no event is enabled"},
		{"its own value is one", sim.JudgeOf(process.Decision), false, map[process.ID][]int64{0: {1}, 1: {1, 2}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
				if ev.Kind == process.Propose {
					for _, v := range test.decides[m.self] {
						fx.Decide(v)
					}
				}
			})
			spec.Family = process.Agreement
			if test.once {
				spec.Claims.Properties = []process.Claim{{Property: process.DecideOnce}}
			}
			checkVerdict(t, run(t, sim.Config{
				Spec: spec, Process: process.Config{N: 3}, Judges: []sim.Judge{test.judge},
				Workload: sim.Workload{Commands: []sim.Command{
					{At: ms, Process: 0, Kind: process.Propose, Value: 1}, {At: 2 * ms, Process: 1, Kind: process.Propose, Value: 2},
				}},
			}), test.want)
		})
	}
}

// TestLateProposals: a proposal after the decision waits for nothing, and a crashed
// process does not wait either.
func TestLateProposals(t *testing.T) {
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Propose && ev.Value == 1 {
			fx.Decide(1)
		}
	})
	spec.Family, spec.Claims.Properties = process.Agreement, []process.Claim{{Property: process.DecideOnce}}
	checkVerdict(t, run(t, sim.Config{
		Spec: spec, Process: process.Config{N: 2}, Judges: []sim.Judge{sim.JudgeOf(process.Decision)},
		Workload: sim.Workload{Commands: []sim.Command{
			{At: ms, Process: 0, Kind: process.Propose, Value: 1}, {At: 2 * ms, Process: 0, Kind: process.Propose, Value: 2},
			{At: 2 * ms, Process: 1, Kind: process.Propose, Value: 2},
		}},
		Faults: []sim.Fault{{At: 3 * ms, Kind: sim.Crash, Process: 1}},
	}), "")
}
