package sim_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// A process that was down may take longer to notice that another process is down: that
// one may have restarted just before, and none of its messages has arrived. An earlier
// suspicion is forgotten. A process that was up at the restart may not be suspected.
func TestAccuracyAfterOwnRestart(t *testing.T) {
	suspect := func(m *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Load {
			fx.Suspect(1)
		}
	}
	for _, test := range []struct {
		name  string
		at    []process.Duration
		wrong bool
	}{
		{"forgotten and noticed again", []process.Duration{15 * ms, 45 * ms}, false},
		{"noticed twice", []process.Duration{15 * ms, 45 * ms, 46 * ms}, true},
		{"a second restart, while it is up", []process.Duration{15 * ms, 65 * ms}, true},
	} {
		r := run(t, sim.Config{
			Spec: probeSpec(suspect), Process: process.Config{N: 2}, Judges: []sim.Judge{sim.StrongAccuracy},
			Workload: sim.Workload{Commands: loads(0, test.at...)},
			Faults: []sim.Fault{
				{At: 10 * ms, Kind: sim.Crash, Process: 1, For: 30 * ms},
				{At: 20 * ms, Kind: sim.Crash, Process: 0, For: 10 * ms},
				{At: 50 * ms, Kind: sim.Crash, Process: 0, For: 10 * ms},
			},
		})
		if got := len(r.Violations) > 0; got != test.wrong {
			t.Errorf("%s: %v, want a violation: %v", test.name, r.Violations, test.wrong)
		}
	}
}
