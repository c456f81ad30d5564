package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// Each judge of multicasts finds the violation in a group with a deliberate flaw, and
// nothing in a correct group. In all of them 1 multicasts 10 at 1 ms, and 11 at 2 ms, and
// 2 multicasts 20 at 5 ms.
func TestMulticastJudgesCanFail(t *testing.T) {
	slow := []sim.Override{{From: 0, To: 2, Link: sim.Link{Delay: sim.Constant(50 * ms)}}}
	overtaking := []sim.Override{{From: 0, To: 2, Link: sim.Link{Delay: sim.List(50*ms, ms), Unordered: true}}}
	crash := []sim.Fault{{At: ms, Kind: sim.CrashInStep, Process: 0, Effects: 1}}
	for _, test := range []struct {
		name   string
		judge  sim.Judge
		rules  rules
		links  []sim.Override
		faults []sim.Fault
		want   string // in the violation; empty: none
	}{
		{"all deliver", sim.MulticastAgreement, broadcasts, slow, nil, ""},
		{"nobody else is told", sim.MulticastAgreement, selfish, nil, nil,
			"2 has never delivered multicast 1 of 1 (value 10), which its sender has lived to see delivered"},
		{"twice", sim.MulticastAgreement, deliversTwice, nil, nil, "1 delivers value 10 of 1, which was not sent or was delivered before"},
		{"invented", sim.MulticastAgreement, invents, nil, nil, "1 delivers value 11 of 1, which was not sent"},
		{"the sender crashes", sim.MulticastAgreement, broadcasts, nil, crash,
			"3 has never delivered multicast 1 of 1 (value 10), which 2 has delivered"},
		{"in order", sim.OrderFIFO, broadcasts, slow, nil, ""},
		{"overtaken", sim.OrderFIFO, broadcasts, overtaking, nil,
			"3 delivers multicast 2 of 1 (value 11) before multicast 1 of 1 (value 10)"},
		{"question first", sim.OrderCausal, broadcasts, nil, nil, ""},
		{"answer first", sim.OrderCausal, broadcasts, slow, nil,
			"3 delivers multicast 1 of 2 (value 20) before multicast 1 of 1 (value 10), which happened before it"},
		{"one sequence", sim.OrderTotal, broadcasts, nil, nil, ""},
		{"two sequences", sim.OrderTotal, broadcasts, slow, nil,
			"3 delivers multicast 1 of 2 (value 20) in place 1, 1 has delivered multicast 1 of 1 (value 10) there"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := sim.Config{
				Spec: probeSpec(test.rules), Process: process.Config{N: 3},
				Links: sim.Links{Overrides: test.links}, Faults: test.faults, Judges: []sim.Judge{test.judge},
				Workload: sim.Workload{Commands: []sim.Command{
					{At: 1 * ms, Process: 0, Kind: process.Propose, Value: 10},
					{At: 2 * ms, Process: 0, Kind: process.Propose, Value: 11},
					{At: 5 * ms, Process: 1, Kind: process.Propose, Value: 20},
				}},
			}
			checkVerdict(t, run(t, cfg), test.want)
		})
	}
}

// What a process that crashed has delivered, or has not, is nobody's concern.
func TestCrashedAreOutOfTheGroup(t *testing.T) {
	for _, judge := range []sim.Judge{sim.MulticastAgreement, sim.OrderFIFO, sim.OrderCausal, sim.OrderTotal} {
		cfg := sim.Config{
			Spec: probeSpec(selfish), Process: process.Config{N: 2}, Judges: []sim.Judge{judge},
			Faults: []sim.Fault{{At: 2 * ms, Kind: sim.Crash, Process: 0, For: ms}},
			Workload: sim.Workload{Commands: []sim.Command{
				{At: 1 * ms, Process: 0, Kind: process.Propose, Value: 10},
				{At: 9 * ms, Process: 0, Kind: process.Propose, Value: 10},
			}},
		}
		checkVerdict(t, run(t, cfg), "")
	}
}

// broadcasts sends what is multicast to everybody, who delivers it as it comes.
func broadcasts(m *probe, ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Propose:
		fx.Broadcast(process.Message{Type: note, Value: ev.Value})
		fx.Deliver(&process.Message{Type: note, From: m.self, Value: ev.Value})
	case process.Deliver:
		fx.Deliver(ev.Message)
	}
}

func selfish(m *probe, ev *process.Event, fx *process.Effects) {
	if ev.Kind == process.Propose {
		fx.Deliver(&process.Message{Type: note, From: m.self, Value: ev.Value})
	}
}

func deliversTwice(m *probe, ev *process.Event, fx *process.Effects) {
	broadcasts(m, ev, fx)
	selfish(m, ev, fx)
}

func invents(m *probe, ev *process.Event, fx *process.Effects) {
	invented := *ev
	invented.Value++
	broadcasts(m, &invented, fx)
}
