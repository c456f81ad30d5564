package centralclock

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func TestEntryDoesNotAllocate(t *testing.T) {
	s := processtest.NewCluster(t, Spec, &process.Config{N: 5})
	s.RequestAll()
	s.Enter()
	if allocs := testing.AllocsPerRun(1000, func() { s.Next() }); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
	if s.Fence != process.Fence(s.Entries) {
		t.Errorf("the fence of entry %d is %s", s.Entries, s.Fence)
	}
}

// TestClock: stamps follow the reading of the clock. If the clock stands still or goes
// back, they grow by one.
func TestClock(t *testing.T) {
	m := Spec.New(0, &process.Config{N: 4})
	var fx process.Effects
	asks := []struct {
		from process.ID
		now  process.Duration
		want uint64
	}{{1, 100, 100}, {2, 100, 101}, {3, 90, 102}, {1, 103, 103}, {2, 200, 200}, {3, -5, 201}}
	for i, a := range asks {
		fx.Begin(0, nil)
		msg := process.Message{Type: ask, From: a.from, Seq: uint64(i + 1)}
		m.Step(&process.Event{Kind: process.Deliver, Message: &msg, Now: a.now}, &fx)
		answer := fx.Message(fx.At(fx.Len() - 1))
		if answer.Clock != a.want || answer.Fence != process.Fence(i+1) {
			t.Errorf("at %d the stamp is %d with fence %s, want %d with %d", a.now, answer.Clock, answer.Fence, a.want, i+1)
		}
	}
}

// TestBase: machines that are created again continue above the numbers that they used.
func TestBase(t *testing.T) {
	s := processtest.NewCluster(t, Spec, &process.Config{N: 2})
	s.Request(1)
	s.Enter()
	if idler := s.Machines[1].(process.Idler); idler.Idle() {
		t.Error("a machine is idle while it is inside")
	}
	s.Leave()
	s.Quiet()
	if idler := s.Machines[1].(process.Idler); !idler.Idle() {
		t.Error("a machine is not idle after its entry")
	}
	s.Renew()
	s.Request(1)
	s.Enter()
	if m := s.Machines[1].(*machine); m.fence != 2 || m.stamp != 2 || m.number != 2 {
		t.Errorf("the next entry has fence %s, stamp %d and number %d, want 2, 2 and 2", m.fence, m.stamp, m.number)
	}
}
