package sim

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/process"
)

var detectors = []*process.Spec{heartbeat.Spec, heartbeat.Reliable, phiaccrual.Spec, swim.Spec}

// hindered is a machine that does not get some of its events.
type hindered struct {
	process.Machine
	misses func(ev *process.Event) bool
}

func (h *hindered) Step(ev *process.Event, fx *process.Effects) {
	if !h.misses(ev) {
		h.Machine.Step(ev, fx)
	}
}

// hinder returns an algorithm whose machines miss events.
func hinder(spec *process.Spec, misses func(ev *process.Event) bool) *process.Spec {
	broken := *spec
	broken.New = func(self process.ID, c *process.Config) process.Machine {
		return &hindered{spec.New(self, c), misses}
	}
	return &broken
}

func inDs(d int) process.Duration { return process.Duration(d) * process.Millisecond }

// afterCrash runs four processes for a time. One crashes at 100 D.
func afterCrash(t *testing.T, spec *process.Spec, until int) *Result {
	t.Helper()
	r, err := Run(Config{
		Spec: spec, Process: process.Config{N: 4}, Limit: Limit{Until: inDs(until)},
		Faults: []Fault{{At: inDs(100), Kind: Crash, Process: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestDetectorsAreJudged: the detectors keep what they claim, and those that are
// broken do not.
func TestDetectorsAreJudged(t *testing.T) {
	// Timers about a peer are what finds a crash; for SWIM those of a period.
	blind := func(ev *process.Event) bool {
		return ev.Kind == process.Fire && ev.Timer.Peer() != process.None
	}
	deaf := func(ev *process.Event) bool { return ev.Kind == process.Deliver && ev.Message.From != 2 }
	for _, spec := range detectors {
		if r := afterCrash(t, spec, 2000); len(r.Violations) > 0 {
			t.Errorf("%s: %v", spec.Name, r.Violations[0])
		}
		if spec != swim.Spec {
			expectViolation(t, hinder(spec, blind), "does not suspect it")
		}
		if spec != heartbeat.Reliable {
			expectViolation(t, hinder(spec, deaf), "which is up")
		}
	}
	expectViolation(t, hinder(swim.Spec, func(ev *process.Event) bool { return ev.Kind == process.Fire }), "does not suspect it")
}

func expectViolation(t *testing.T, spec *process.Spec, words string) {
	t.Helper()
	r := afterCrash(t, spec, 2000)
	if len(r.Violations) == 0 || !strings.Contains(r.Violations[0].Text, words) {
		t.Errorf("broken %s: violations %v, want one that says %q", spec.Name, r.Violations, words)
	}
}

// TestDetectorsHaveTheirTime: shortly after a fault nobody is accused.
func TestDetectorsHaveTheirTime(t *testing.T) {
	for _, spec := range detectors {
		if r := afterCrash(t, spec, 101); len(r.Violations) > 0 {
			t.Errorf("%s: %v", spec.Name, r.Violations[0])
		}
	}
}

// TestFaultsThatLast: while a process is paused or cut off, the judges report no
// violation. If links lose messages, they report no wrong suspicion.
func TestFaultsThatLast(t *testing.T) {
	for _, c := range []struct {
		fault Fault
		drop  float64
	}{
		{fault: Fault{Kind: Pause, Process: 1}},
		{fault: Fault{Kind: Partition, Side: []process.ID{1}}},
		{fault: Fault{Kind: Resume, Process: 1}, drop: 0.6},
	} {
		for _, spec := range []*process.Spec{heartbeat.Spec, swim.Spec} {
			c.fault.At = inDs(10)
			r, err := Run(Config{
				Spec: spec, Process: process.Config{N: 3}, Limit: Limit{Until: inDs(3000)},
				Faults: []Fault{c.fault}, Links: Links{Link: Link{Drop: c.drop}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Violations) > 0 {
				t.Errorf("%s with %s: %v", spec.Name, c.fault.Kind, r.Violations[0])
			}
		}
	}
}

// TestHealedPartition: two halves that have declared each other failed find
// together again.
func TestHealedPartition(t *testing.T) {
	for _, spec := range detectors {
		if spec == heartbeat.Reliable {
			continue
		}
		wrong := 0
		note := func(*World) Watcher {
			return Watcher{Name: "note", Watch: func(o *Observation) string {
				if o.Kind == Suspected || o.Kind == Failed {
					wrong++
				}
				return ""
			}}
		}
		cfg := Config{
			Spec: spec, Process: process.Config{N: 6}, Limit: Limit{Until: inDs(4000)},
			Faults: []Fault{{At: inDs(50), Kind: Partition, Side: []process.ID{0, 1, 2}, For: inDs(800)}},
		}
		cfg.Judges = append(Claimed(spec, &cfg.Process), note)
		r, err := Run(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 || wrong < 18 {
			t.Errorf("%s: %d suspicions across the cut, then %v", spec.Name, wrong, r.Violations)
		}
	}
}
