package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// A detector in its own layer never suspects a live process, unless timers may run out at
// any time: its timers are longer than a live process can be silent. So a lock over it is
// safe without crashes, and it continues after one.
func TestDetectorInAStack(t *testing.T) {
	for _, detector := range []*process.Spec{heartbeat.Reliable, swim.Spec} {
		over := func(lock *process.Spec, crashes int, timing check.Timing) *check.Result {
			spec := process.Compose("stack", "A stack", detector, bully.Spec, lock)
			r, err := check.Run(t.Context(), check.Config{
				Spec: spec, Process: process.Config{N: 2}, Timeouts: 5, Crashes: crashes, Timing: timing, Workers: 1,
			})
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		for crashes := range 2 {
			if r := over(central.Spec, crashes, check.Synchronous); r.Verdict != check.Proved {
				t.Errorf("%s, %d crashes: %s, %v", detector.Name, crashes, r.Verdict, r.Broken)
			}
			r := over(watched(central.Spec), crashes, check.Synchronous)
			if enters := r.Broken != nil && r.Broken.Text == afterFail; enters != (crashes > 0) {
				t.Errorf("%s, %d crashes: somebody enters who was told of one: %v (%v)", detector.Name, crashes, enters, r.Broken)
			}
		}
		if r := over(central.Spec, 0, check.AnyTime); r.Verdict != check.Violated || r.Broken.Property != process.MutualExclusion {
			t.Errorf("%s, timers at any time: %s, %v", detector.Name, r.Verdict, r.Broken)
		}
	}
}

// The numbers of heartbeats and probes grow forever, but only their order matters. So a
// stack that only watches returns to an earlier state, and no process waits in it
// forever.
func TestWatchingForEver(t *testing.T) {
	for name, states := range map[string]uint64{"central-recovering": 80, "central-swim": 143} {
		r, err := check.Run(t.Context(), check.Config{
			Spec: algorithm.Find(name), Process: process.Config{N: 2}, Liveness: true, MaxStates: 10_000, Workers: 1,
			Properties: []process.Property{process.MutualExclusion, process.Progress, process.FencesGrow},
		})
		if err != nil || r.Verdict != check.Proved || r.States != states {
			t.Errorf("%s: %v, %v, %d states, want %d", name, r.Sentence(), r.Broken, r.States, states)
		}
	}
}

// A lock alone may be searched with timers that are shorter than a critical section.
func TestLockAlone(t *testing.T) {
	run := func(timing check.Timing) uint64 {
		r, err := check.Run(t.Context(), check.Config{
			Spec: algorithm.Find("singhal"), Process: process.Config{N: 2}, Timing: timing, Timeouts: 2, Workers: 1,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.States
	}
	if patient, synchronous := run(check.Patient), run(check.Synchronous); synchronous <= patient {
		t.Errorf("%d states with timers that wait until nobody is inside, %d with others", patient, synchronous)
	}
}

const afterFail = "nobody enters who was told of a crash"

// watched is an algorithm that asserts afterFail, so that a search finds who does.
func watched(spec *process.Spec) *process.Spec {
	s := *spec
	s.New = func(self process.ID, c *process.Config) process.Machine { return &witness{Machine: spec.New(self, c)} }
	return &s
}

type witness struct {
	process.Machine
	told bool
}

func (m *witness) Step(ev *process.Event, fx *process.Effects) {
	m.told = m.told || ev.Kind == process.Fail
	m.Machine.Step(ev, fx)
	for i := range fx.Len() {
		process.Assert(!m.told || fx.At(i).Kind != process.EffectGrant, afterFail)
	}
}

func (m *witness) Fields(f *process.Fields) {
	m.Machine.Fields(f)
	f.Bool("told", &m.told)
}
