package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// At a Load, process 0 performs many effects in order, and a test can see which of them
// happened.
func busyRules(m *probe, ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Load:
		fx.Send(1, process.Message{Type: note, Seq: 1})
		m.kept = 7
		fx.Arm(1, ms, ms)
		if ev.Value == 1 {
			fx.Save()
		}
		fx.Broadcast(process.Message{Type: note, Seq: 2})
		fx.Decide(5)
	case process.Restart:
		fx.Decide(int64(100 + m.kept))
	}
}

// seen is what observers saw in a run.
type seen struct{ log []string }

func (s *seen) judge(w *sim.World) sim.Watcher {
	return sim.Watcher{Name: "seen", Messages: true, Watch: func(o *sim.Observation) string {
		switch o.Kind {
		case sim.Received:
			s.log = append(s.log, fmt.Sprintf("%d gets %d", o.Process, o.Message.Seq))
		case sim.Decided:
			s.log = append(s.log, fmt.Sprintf("%d decides %d", o.Process, o.Value))
		}
		return ""
	}}
}

// A crash within a step leaves exactly a prefix of its effects.
func TestCrashAfterEachPrefix(t *testing.T) {
	full := []string{"0 decides 5", "1 gets 1", "1 gets 2", "2 gets 2"}
	for effects, want := range [][]string{
		{},
		{"1 gets 1"},
		{"1 gets 1"}, // the timer, which does not survive
		{"1 gets 1", "1 gets 2"},
		{"1 gets 1", "1 gets 2", "2 gets 2"},
		full, full,
	} {
		if got := busy(t, 0, sim.Fault{Kind: sim.CrashInStep, Effects: effects}); !slices.Equal(got, want) {
			t.Errorf("after %d effects: %v, want %v", effects, got, want)
		}
	}
}

// If the step saves, nothing leaves before it has, also what was sent first.
func TestCrashBeforeAndAfterSave(t *testing.T) {
	for effects, want := range [][]string{
		{"0 decides 100"}, {"0 decides 100"}, {"0 decides 100"},
		{"1 gets 1", "0 decides 107"},
		{"1 gets 1", "1 gets 2", "0 decides 107"},
	} {
		got := busy(t, 1, sim.Fault{Kind: sim.CrashInStep, Effects: effects, For: 5 * ms})
		if !slices.Equal(got, want) {
			t.Errorf("after %d effects: %v, want %v", effects, got, want)
		}
	}
}

// The step may also be named by its number; Start is number 1.
func TestCrashInNumberedStep(t *testing.T) {
	if got := busy(t, 0, sim.Fault{Kind: sim.CrashInStep, Step: 2, Effects: 1}); !slices.Equal(got, []string{"1 gets 1"}) {
		t.Errorf("crash in step 2: %v", got)
	}
	if got := busy(t, 0, sim.Fault{Kind: sim.CrashInStep, Step: 9, Effects: 1}); len(got) != 4 {
		t.Errorf("crash in a step that does not come: %v", got)
	}
}

func busy(t *testing.T, value int64, faults ...sim.Fault) []string {
	t.Helper()
	for i := range faults {
		faults[i].At = 10 * ms
	}
	s := seen{log: []string{}}
	finish(t, sim.Config{
		Spec: probeSpec(busyRules), Process: process.Config{N: 3}, Faults: faults, Judges: []sim.Judge{s.judge},
		Workload: sim.Workload{Commands: []sim.Command{{At: 10 * ms, Kind: process.Load, Value: value}}},
	}, nil)
	return s.log
}

// A restarted process has what it saved, as of the last Save, and nothing else.
func TestRestartKeepsDurableFields(t *testing.T) {
	var after []uint64
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Load:
			m.kept, m.counted = uint64(ev.Value), uint64(ev.Value)
			if ev.Value < 3 {
				fx.Save()
			}
		case process.Restart:
			after = append(after, ev.Incarnation, m.kept, m.counted)
		}
	})
	load := func(at process.Duration, v int64) sim.Command {
		return sim.Command{At: at, Kind: process.Load, Value: v}
	}
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 1},
		Workload: sim.Workload{Commands: []sim.Command{load(1, 1), load(2, 2), load(3, 3), load(6, 9)}},
		Faults:   []sim.Fault{{At: 4, Kind: sim.Crash}, {At: 8, Kind: sim.Restart}, {At: 9, Kind: sim.Crash, For: 1}},
	}, nil)
	if want := []uint64{2, 2, 0, 3, 2, 0}; !slices.Equal(after, want) {
		t.Errorf("incarnation, durable and volatile field after two restarts are %v, want %v", after, want)
	}
}

// A slow disk delays the messages of a step, and those of later steps. A crash meanwhile
// loses both the save and the messages.
func TestSlowDisk(t *testing.T) {
	for _, test := range []struct {
		name   string
		faults []sim.Fault
		want   []uint64 // in ms
	}{
		{"without", nil, []uint64{2, 3}},
		{"slow", []sim.Fault{{Kind: sim.SlowDisk, Disk: sim.Constant(5 * ms)}}, []uint64{7, 7}},
		{"crash", []sim.Fault{
			{Kind: sim.SlowDisk, Disk: sim.Constant(5 * ms)}, {At: 3 * ms, Kind: sim.Crash, For: ms},
		}, []uint64{5}},
		{"crash when done", []sim.Fault{
			{Kind: sim.SlowDisk, Disk: sim.Constant(5 * ms)}, {At: 13 * ms / 2, Kind: sim.Crash, For: ms},
		}, []uint64{7, 7, 8 + 1000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := slowDisk(t, test.faults); !slices.Equal(got, test.want) {
				t.Errorf("messages arrive at %v ms, want %v", got, test.want)
			}
		})
	}
}

// slowDisk saves and sends at 1 ms, and sends at 2 ms. After a restart it sends
// again, and 1000 is added to the arrival if the save was complete.
func slowDisk(t *testing.T, faults []sim.Fault) (arrivals []uint64) {
	var w *sim.World
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Load:
			if w.Now() == ms {
				m.kept = 1000
				fx.Save()
			}
			fx.Send(1, process.Message{Type: note})
		case process.Restart:
			fx.Send(1, process.Message{Type: note, Seq: m.kept})
		case process.Deliver:
			arrivals = append(arrivals, uint64(w.Now()/ms)+ev.Message.Seq)
		}
	})
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 2}, Faults: faults, Workload: sim.Workload{Commands: loads(0, ms, 2*ms)},
	}, &w)
	return arrivals
}

// What happens to a paused process happens when it resumes, in its order.
func TestPause(t *testing.T) {
	var w *sim.World
	var log []string
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch {
		case m.self == 0 && ev.Kind == process.Load:
			m.counted++
			fx.Send(1, process.Message{Type: note, Seq: m.counted})
		case m.self == 1 && ev.Kind == process.Start:
			fx.Arm(1, 4*ms, 4*ms)
			fx.Arm(process.Timer(1).For(0), 5*ms, 5*ms)
		case m.self == 1 && ev.Kind == process.Deliver:
			log = append(log, fmt.Sprintf("%d@%d", ev.Message.Seq, w.Now()/ms))
			fx.Disarm(process.Timer(1).For(0))
		case m.self == 1 && ev.Kind == process.Fire:
			log = append(log, fmt.Sprintf("timer %d@%d", ev.Timer.Peer(), w.Now()/ms))
		}
	})
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 2}, Workload: sim.Workload{Commands: loads(0, every(ms, 4)...)},
		Links:  sim.Links{Link: sim.Link{Delay: sim.Constant(3 * ms / 2)}},
		Faults: []sim.Fault{{At: 3 * ms, Kind: sim.Pause, Process: 1, For: 5 * ms}},
	}, &w)
	// The timer about 0 runs out in the pause too, but 1's delivery disarmed it.
	if want := []string{"1@2", "2@8", "timer -1@8", "3@8", "4@8"}; !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
}

// Timers and readings follow a clock that drifts, for machines that read one.
func TestDrift(t *testing.T) {
	var w *sim.World
	var fired, read []process.Duration
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Start:
			fx.Arm(1, 100*ms, 100*ms)
		case process.Fire:
			fired, read = append(fired, w.Now()), append(read, ev.Now)
		}
	})
	spec.Needs.Clock = true
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 3}, Clocks: []sim.Clock{{Offset: ms}, {Drift: 250_000}},
		Faults: []sim.Fault{{Kind: sim.Drift, Process: 2, Drift: -200_000}},
	}, &w)
	if want := []process.Duration{80 * ms, 100 * ms, 125 * ms}; !slices.Equal(fired, want) {
		t.Errorf("timers of 100 ms run out at %v, want %v", fired, want)
	}
	if want := []process.Duration{100 * ms, 101 * ms, 100 * ms}; !slices.Equal(read, want) {
		t.Errorf("clocks show %v then, want %v", read, want)
	}
}

// A clock that jumps takes the deadlines of its timers with it.
func TestJump(t *testing.T) {
	var w *sim.World
	var fired, read []process.Duration
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Start:
			fx.Arm(1, 100*ms, 100*ms)
			fx.Arm(2, 300*ms, 300*ms)
			fx.Disarm(2)
		case process.Fire:
			fired, read = append(fired, w.Now()), append(read, ev.Now)
		}
	})
	spec.Needs.Clock = true
	spec.Timers = []string{"one", "two"}
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 4}, Clocks: []sim.Clock{{}, {}, {}, {Drift: 250_000}},
		Faults: []sim.Fault{
			{At: 10 * ms, Kind: sim.Jump, Process: 0, By: 30 * ms}, {At: 20 * ms, Kind: sim.Jump, Process: 1, By: 500 * ms},
			{At: 30 * ms, Kind: sim.Jump, Process: 2, By: -50 * ms}, {At: 40 * ms, Kind: sim.Jump, Process: 3, By: 25 * ms},
		},
	}, &w)
	if want := []process.Duration{20 * ms, 60 * ms, 70 * ms, 150 * ms}; !slices.Equal(fired, want) {
		t.Errorf("timers of 100 ms run out at %v, want %v", fired, want)
	}
	if want := []process.Duration{520 * ms, 100 * ms, 100 * ms, 100 * ms}; !slices.Equal(read, want) {
		t.Errorf("clocks show %v then, want %v", read, want)
	}
}

// A timer that was armed again or disarmed does not fire; a range is used up.
func TestTimers(t *testing.T) {
	var w *sim.World
	var fired []process.Duration
	finish(t, sim.Config{
		Process: process.Config{N: 2}, Workload: sim.Workload{Commands: loads(0, ms, 2*ms, 10*ms, 11*ms)}, Seed: 3,
		Spec: probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
			switch ev.Kind {
			case process.Load:
				m.counted++
				if m.counted == 4 {
					fx.Disarm(1)
				} else {
					fx.Arm(1, 3*ms, 4*ms)
				}
			case process.Fire:
				fired = append(fired, w.Now())
			}
		}),
	}, &w)
	if len(fired) != 1 || fired[0] < 5*ms || fired[0] > 6*ms {
		t.Errorf("the timer armed at 1, 2 and 10 ms and disarmed at 11 ms fires at %v, want once, from 5 to 6 ms", fired)
	}
}

// Once a restart is known, messages from and to the old incarnation do not arrive. Rejoin
// precedes the first message of the new one.
func TestIncarnations(t *testing.T) {
	var log []string
	var w *sim.World
	spec := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		text := ev.Kind.String()
		switch ev.Kind {
		case process.Load, process.Restart:
			m.counted++
			fx.Send(1-m.self, process.Message{Type: note, Seq: uint64(ev.Value)})
			return
		case process.Deliver:
			text = fmt.Sprint(text, ev.Message.Seq)
		case process.Rejoin:
			text = fmt.Sprint(text, ev.Incarnation)
		case process.Start:
			return
		}
		log = append(log, fmt.Sprintf("%d %s", m.self, text))
	})
	load := func(at process.Duration, p process.ID, v int64) sim.Command {
		return sim.Command{At: at, Process: p, Kind: process.Load, Value: v}
	}
	finish(t, sim.Config{
		Spec: spec, Process: process.Config{N: 2},
		// 2 is sent just before the crash but overtaken by what the new
		// incarnation sends first; 3 goes to the old incarnation; 4 to the new.
		Links: sim.Links{Link: sim.Link{Delay: sim.List(ms, 9*ms, ms, ms), Unordered: true}},
		Workload: sim.Workload{Commands: []sim.Command{
			load(ms, 0, 1), load(3*ms, 0, 2), load(7*ms/2, 1, 3), load(8*ms, 1, 4),
		}},
		Faults: []sim.Fault{{At: 3*ms + 1, Kind: sim.Crash, For: ms}},
	}, &w)
	if want := []string{"1 deliver1", "1 rejoin2", "1 deliver0", "0 deliver4"}; !slices.Equal(log, want) {
		t.Errorf("%v, want %v", log, want)
	}
}
