package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// idleRing is a token that always circulates: a process that wants it never gets it.
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

// TestLiveness: if the token skips one process, that process waits forever although the
// token moves. If the token stops for everyone, nobody waits forever.
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

// beating are two processes; one of them sends heartbeats forever. The other one enters
// after it has waited for a while. If it is shy, each heartbeat restarts its wait. If it
// is alone, it receives only its own heartbeats.
type beating struct {
	self       process.ID
	waits      bool
	shy, alone bool
}

const (
	beat process.Timer = iota + 1
	timeout
)

func (m *beating) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		if (m.self == 0) != m.alone {
			fx.Arm(beat, process.Millisecond, process.Millisecond)
		}
	case process.Acquire:
		m.waits = true
		fx.Arm(timeout, process.Millisecond, process.Millisecond)
	case process.Deliver:
		m.hear(fx)
	case process.Fire:
		if ev.Timer == timeout {
			m.waits = false
			fx.Grant(1)
			return
		}
		fx.Arm(beat, process.Millisecond, process.Millisecond)
		if m.alone {
			m.hear(fx)
		} else {
			fx.Send(1, process.Message{Type: 1})
		}
	}
}

func (m *beating) hear(fx *process.Effects) {
	if m.waits && m.shy {
		fx.Arm(timeout, process.Millisecond, process.Millisecond)
	}
}

func (m *beating) Fields(f *process.Fields) { f.Bool("waits", &m.waits) }

// TestTimersBesideHeartbeats: some timers may run out only while no message is in flight.
// Heartbeats do not delay such a timer forever. Setting it again does, even if it could
// have run out each time.
func TestTimersBesideHeartbeats(t *testing.T) {
	for shy, want := range map[bool]check.Verdict{false: check.Proved, true: check.Violated} {
		for _, alone := range []bool{false, true} {
			r := patient(t, 2, func(self process.ID) process.Machine { return &beating{self: self, shy: shy, alone: alone} })
			if r.Verdict != want {
				t.Errorf("shy %v, alone %v: %s %v, want %s", shy, alone, r.Verdict, r.Broken, want)
			}
		}
	}
}

// patient searches for a run in which process 1 waits forever beside machines that
// have the timers beat and timeout.
func patient(t *testing.T, n int, machine func(self process.ID) process.Machine) *check.Result {
	t.Helper()
	r, err := check.Run(t.Context(), check.Config{
		Spec: &process.Spec{
			Name: "patient", Family: process.Mutex, Messages: tokenring.Spec.Messages, Timers: []string{"beat", "timeout"},
			New: func(self process.ID, c *process.Config) process.Machine { return machine(self) },
		},
		Process: process.Config{N: n}, Requesters: []process.ID{1}, Liveness: true, Timing: check.Synchronous,
		Properties: []process.Property{process.Progress},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bouncing are three processes: 0 sends a message, and 1 and 2 send it back and forth.
// While it flies, the timeout of 1 cannot end. If it stops, 0 serves the next.
type bouncing struct {
	self    process.ID
	stops   stopping
	stopped bool
}

// stopping is when the message stops.
type stopping int

const (
	never    stopping = iota
	byChoice          // of 2
	byOrder           // that 0 sends to 2 with each message
)

const (
	ball process.Type = iota + 1
	order
)

func (m *bouncing) Step(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Start:
		m.rest(fx)
	case process.Acquire:
		fx.Arm(timeout, process.Millisecond, process.Millisecond)
	case process.Deliver:
		m.onMessage(ev, fx)
	case process.Fire:
		if ev.Timer == timeout {
			fx.Grant(1)
			return
		}
		fx.Send(1, process.Message{Type: ball})
		if m.stops == byOrder {
			fx.Send(2, process.Message{Type: order})
		}
	}
}

func (m *bouncing) onMessage(ev *process.Event, fx *process.Effects) {
	switch {
	case ev.Message.Type == order:
		m.stopped = true
	case m.self == 0:
		m.rest(fx)
	case m.self == 2 && (m.stopped || m.stops == byChoice && fx.Choose(2) == 1):
		m.stopped = false
		fx.Send(0, process.Message{Type: ball})
	default:
		fx.Send(3-m.self, process.Message{Type: ball})
	}
}

// rest lets 0 wait before it serves.
func (m *bouncing) rest(fx *process.Effects) {
	if m.self == 0 {
		fx.Arm(beat, process.Millisecond, process.Millisecond)
	}
}

func (m *bouncing) Fields(f *process.Fields) { f.Bool("stopped", &m.stopped) }

// TestLoopsInLoops: a message that may stop, but need not, flies forever in an inner
// loop. The timer is overdue in the outer loop. It does not fly forever if an order to
// stop is in flight, because that order arrives.
func TestLoopsInLoops(t *testing.T) {
	for stops, want := range []check.Verdict{never: check.Violated, byChoice: check.Violated, byOrder: check.Proved} {
		r := patient(t, 3, func(self process.ID) process.Machine { return &bouncing{self: self, stops: stopping(stops)} })
		if r.Verdict != want {
			t.Errorf("stops %d: %s %v, want %s", stops, r.Verdict, r.Broken, want)
		}
		if want == check.Violated && r.Verdict == want && len(r.Path.Steps)-r.Path.Loop != 2 {
			t.Errorf("stops %d: a round has %d steps, want 2: to and fro", stops, len(r.Path.Steps)-r.Path.Loop)
		}
	}
}
