package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// A super-peer that may have two clients takes 2, 3 and 4 one after the other. The last
// one breaks its promise, unless another one is no longer a client. The judge and the
// super-peer agree on that.
func TestJudgeOfTheCap(t *testing.T) {
	const most = "1 has 3 clients, the limit is 2"
	noSplit := *superpeer.Spec
	noSplit.New = superpeer.Flaw{NoSplit: true}.New
	late := func(p process.ID, at process.Duration) sim.Fault {
		return sim.Fault{Kind: sim.Crash, Process: p, For: at}
	}
	leave := func(p process.ID, at process.Duration) []sim.Command {
		return []sim.Command{{Kind: process.Leave, Process: p, At: at}}
	}
	for _, test := range []struct {
		name     string
		spec     *process.Spec
		faults   []sim.Fault
		commands []sim.Command
		want     string
	}{
		{"takes all at once", &noSplit, nil, nil, most},
		{"splits", superpeer.Spec, nil, nil, ""},
		{"takes one long after the others, which it hears every period", &noSplit, []sim.Fault{late(1, 300*ms)}, nil, most},
		// The ATTACH of 4 comes after its end, and 1 takes it for three periods.
		{"takes one that is down", superpeer.Spec, []sim.Fault{
			{Kind: sim.Crash, Process: 3, At: ms / 2}, late(1, 200*ms), late(2, 200*ms),
		}, nil, ""},
		// The same, but 4 is back. It asks nobody any more, and 1 hears that who
		// asked is no more.
		{"takes one of an earlier life", superpeer.Spec, []sim.Fault{
			{Kind: sim.Crash, Process: 3, At: ms / 2, For: ms / 5}, {Kind: sim.Lose, At: 3 * ms / 5, From: 3, To: 0},
			late(1, 10*ms), late(2, 10*ms),
		}, leave(3, 4*ms/5), ""},
		{"one has crashed", superpeer.Spec, []sim.Fault{
			{Kind: sim.Crash, Process: 3, At: 5 * ms}, late(1, 200*ms), late(2, 200*ms),
		}, nil, ""},
		{"one has left", superpeer.Spec, []sim.Fault{late(1, 10*ms), late(2, 10*ms)}, leave(3, 5*ms), ""},
		{"one is silent for long", superpeer.Spec, []sim.Fault{
			{Kind: sim.Pause, Process: 3, At: 5 * ms, For: 150 * ms}, late(1, 120*ms), late(2, 120*ms),
		}, nil, ""},
		{"one is silent for a while", &noSplit, []sim.Fault{
			{Kind: sim.Pause, Process: 3, At: 5 * ms, For: 900 * ms}, late(1, 50*ms), late(2, 50*ms),
		}, nil, most},
		{"it has crashed itself", superpeer.Spec, []sim.Fault{
			{Kind: sim.Crash, Process: 0, At: 10 * ms, For: ms}, {Kind: sim.Crash, Process: 3, At: 15 * ms}, late(1, 40*ms),
		}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkVerdict(t, run(t, sim.Config{
				Spec: test.spec, Judges: []sim.Judge{sim.JudgeOf(superpeer.Cap)}, Limit: sim.Limit{Until: 500 * ms},
				Process: process.Config{N: 4, Options: []process.OptionValue{{Name: "prefix", Value: "0"}, {Name: "cap", Value: "2"}}},
				Faults:  test.faults, Workload: sim.Workload{Commands: test.commands},
			}), test.want)
		})
	}
}
