package sim_test

import (
	"runtime"
	"testing"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// Once it has its size, a run allocates nothing: with messages, broadcasts,
// lists, timers armed and disarmed, entries, and links that keep the order of
// varying delays or lose and repeat.
func TestEventsAllocateNothing(t *testing.T) {
	vector := []uint64{1, 2, 3}
	timers := probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
		switch ev.Kind {
		case process.Start, process.Fire:
			fx.Arm(1, ms, 2*ms)
			fx.Arm(process.Timer(1).For(m.self), 5*ms, 9*ms)
			fx.Broadcast(process.Message{Type: note, Vector: vector})
		case process.Deliver:
			fx.Disarm(process.Timer(1).For(m.self))
		}
	})
	faulty := sim.Config{
		Spec: timers, Process: process.Config{N: 20}, Limit: sim.Limit{Until: 1 << 60},
		Links: sim.Links{Link: sim.Link{Delay: sim.Exponential(1, ms), Drop: 0.1, Duplicate: 0.1, Reorder: 0.1}},
	}
	saves := sim.Config{
		Spec: probeSpec(func(m *probe, ev *process.Event, fx *process.Effects) {
			if ev.Kind == process.Start || ev.Kind == process.Fire {
				m.kept++
				fx.Arm(1, ms, 2*ms)
				fx.Broadcast(process.Message{Type: note})
				fx.Save()
			}
		}),
		Process: process.Config{N: 5}, Limit: sim.Limit{Until: 1 << 60},
		Faults: []sim.Fault{{Kind: sim.SlowDisk, Process: 1, Disk: sim.Uniform(1, 3*ms/2)}},
	}
	for name, cfg := range map[string]sim.Config{"ring": ringConfig(100), "varying ring": saturated(ringSpec, 100), "timers": faulty, "saves": saves} {
		w := warm(t, cfg, 500_000)
		if allocated := allocations(w, 200_000); allocated > 20 {
			t.Errorf("%s: %d allocations in 200,000 events", name, allocated)
		}
	}
}

// allocations counts all allocations during the given number of events. The collector and
// the testing package add a few of their own.
func allocations(w *sim.World, events int) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range events {
		w.Step()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// A timer that is armed over and over does not pile up in the queue.
func TestDisarmedTimersTakeNoRoom(t *testing.T) {
	spec := probeSpec(func(_ *probe, ev *process.Event, fx *process.Effects) {
		if ev.Kind == process.Start || ev.Kind == process.Fire {
			fx.Arm(1, ms, ms)
			fx.Arm(process.Timer(1).For(0), 1000*process.Second, 1000*process.Second)
		}
	})
	w := warm(t, sim.Config{
		Spec: spec, Process: process.Config{N: 10}, Limit: sim.Limit{Until: 1 << 60},
	}, 500_000)
	before := heap()
	for range 500_000 {
		w.Step()
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the run grew by %d bytes in 500,000 events", grown)
	}
	if w.Pending() != 20 {
		t.Errorf("%d events are pending, want the two timers of each of 10 processes", w.Pending())
	}
}
