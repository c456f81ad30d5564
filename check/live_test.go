package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/check"
	"github.com/conclave-io/conclave/process"
)

// idleRing is a token that circulates without ever being stopped: who wants it asks
// in vain.
type idleRing struct {
	self, n process.ID
	waits   bool
	greedy  bool
}

func (m *idleRing) Step(ev *process.Event, fx *process.Effects) {
	next := (m.self + 1) % m.n
	switch ev.Kind {
	case process.Start:
		if m.self == 0 {
			fx.Send(next, process.Message{Type: 1})
		}
	case process.Acquire:
		m.waits = true
	case process.Deliver:
		if m.waits && !(m.greedy && m.self == 1) {
			m.waits = false
			fx.Grant(1)
			return
		}
		fx.Send(next, process.Message{Type: 1})
	case process.Release:
		fx.Send(next, process.Message{Type: 1})
	}
}

func (m *idleRing) Fields(f *process.Fields) { f.Bool("waits", &m.waits) }

func ring(deaf bool) *process.Spec {
	return &process.Spec{
		Name: "idle-ring", Family: process.Mutex, Messages: tokenring.Spec.Messages,
		New: func(self process.ID, c *process.Config) process.Machine {
			return &idleRing{self: self, n: process.ID(c.N), greedy: deaf}
		},
	}
}

// TestLiveness: on a ring whose token passes one process by, that one waits for ever
// although the token goes on; where it stops for everyone, nobody does.
func TestLiveness(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		r, err := check.Run(t.Context(), check.Config{
			Spec: ring(deaf), Process: process.Config{N: 3}, Liveness: true,
			Properties: []process.Property{process.MutualExclusion, process.Progress},
		})
		if err != nil {
			t.Fatal(err)
		}
		if !deaf {
			if r.Verdict != check.Proved {
				t.Errorf("%s, %v", r.Verdict, r.Broken)
			}
			continue
		}
		if r.Verdict != check.Violated || r.Broken.Property != process.Progress || r.Broken.Process != 1 {
			t.Fatalf("%s, %v", r.Verdict, r.Broken)
		}
		if r.Path.Loop != 1 || len(r.Path.Steps) != 4 {
			t.Errorf("the loop begins after %d of %d steps", r.Path.Loop, len(r.Path.Steps))
		}
	}
}

// beating are two processes of which one sends heartbeats for ever. The other enters
// once it has waited for a while; if it is shy, a heartbeat makes it wait anew.
type beating struct {
	self  process.ID
	waits bool
	shy   bool
}

const (
	beat process.Timer = iota + 1
	patience
)

func (m *beating) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		if m.self == 0 {
			fx.Arm(beat, process.Millisecond, process.Millisecond)
		}
	case process.Acquire:
		m.waits = true
		fx.Arm(patience, process.Millisecond, process.Millisecond)
	case process.Deliver:
		if m.waits && m.shy {
			fx.Arm(patience, process.Millisecond, process.Millisecond)
		}
	case process.Fire:
		if ev.Timer == patience {
			m.waits = false
			fx.Grant(1)
			return
		}
		fx.Send(1, process.Message{Type: 1})
		fx.Arm(beat, process.Millisecond, process.Millisecond)
	}
}

func (m *beating) Fields(f *process.Fields) { f.Bool("waits", &m.waits) }

// TestTimersBesideHeartbeats: a timer that may run out only while no message is on its
// way is not put off for ever by heartbeats, but by being set anew.
func TestTimersBesideHeartbeats(t *testing.T) {
	for _, shy := range []bool{false, true} {
		r, err := check.Run(t.Context(), check.Config{
			Spec: &process.Spec{
				Name: "beating", Family: process.Mutex, Messages: tokenring.Spec.Messages, Timers: []string{"beat", "patience"},
				New: func(self process.ID, c *process.Config) process.Machine { return &beating{self: self, shy: shy} },
			},
			Process: process.Config{N: 2}, Requesters: []process.ID{1}, Liveness: true, Timing: check.Synchronous,
			Properties: []process.Property{process.Progress},
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]check.Verdict{false: check.Proved, true: check.Violated}[shy]; r.Verdict != want {
			t.Errorf("shy %v: %s %v, want %s", shy, r.Verdict, r.Broken, want)
		}
	}
}
