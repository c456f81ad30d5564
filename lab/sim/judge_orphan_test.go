package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// A process that follows a crashed leader must act when it is asked for another leader,
// or is told of the crash. It need not notice the crash by itself.
func TestOrphans(t *testing.T) {
	follow := func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Load {
			fx.Elect(process.ID(ev.Value), process.MakeTerm(1, process.ID(ev.Value)))
		}
	}
	at := func(ms process.Duration, p process.ID, kind process.Kind) sim.Command {
		return sim.Command{At: ms * process.Millisecond, Process: p, Kind: kind, Peer: 2, Value: 2}
	}
	for _, test := range []struct {
		name string
		last sim.Command
		want string
	}{
		{"nobody asks", at(4, 0, process.Load), ""},
		{"asked in vain", at(8, 0, process.Campaign), "1 was asked to replace its leader 3, which crashed, and did nothing"},
		{"asked before the crash", at(4, 0, process.Campaign), ""},
		{"told in vain", at(8, 1, process.Fail), "2 was told that its leader 3 crashed, and still follows it"},
		{"told wrongly before the crash", at(4, 1, process.Fail), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := sim.Config{
				Spec: probeSpec(follow), Process: process.Config{N: 3}, Judges: []sim.Judge{sim.LeaderTermination},
				Faults: []sim.Fault{{At: 6 * process.Millisecond, Kind: sim.Crash, Process: 2}},
				Workload: sim.Workload{Commands: []sim.Command{
					at(1, 0, process.Load), at(1, 1, process.Load), at(1, 2, process.Load), test.last,
				}},
			}
			checkVerdict(t, run(t, cfg), test.want)
		})
	}
}
