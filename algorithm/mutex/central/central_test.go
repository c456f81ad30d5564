package central

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func newCluster(t testing.TB, n int, mode string) *processtest.Cluster {
	return processtest.NewCluster(t, Spec, &process.Config{N: n, Options: []process.OptionValue{{Name: "mode", Value: mode}}})
}

func TestClientOnCoordinatorSendsNothing(t *testing.T) {
	for n := 1; n <= 3; n++ {
		s := newCluster(t, n, denyQueue)
		for range 10 {
			s.Alone(0)
		}
		if s.Sent != 0 || s.Entries != 10 {
			t.Errorf("N=%d: %d messages for %d entries, want 0 for 10", n, s.Sent, s.Entries)
		}
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	s := newCluster(t, 3, denyQueue)
	if allocs := testing.AllocsPerRun(1000, func() { s.Alone(1) }); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
}

func TestIdle(t *testing.T) {
	s := newCluster(t, 3, silent)
	coordinator, client := s.Machines[0].(process.Idler), s.Machines[1].(process.Idler)
	if !coordinator.Idle() || !client.Idle() {
		t.Error("new machines are not idle")
	}
	s.Request(1)
	s.Enter()
	if coordinator.Idle() || client.Idle() {
		t.Error("machines are idle during an entry")
	}
	s.Leave()
	s.Quiet()
	if !coordinator.Idle() || !client.Idle() {
		t.Error("machines are not idle after an entry")
	}
}

// TestBase: a machine that was forgotten while idle continues above the numbers that it
// used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2, silent)
	s.Alone(1)
	s.Renew()
	s.Request(1)
	s.Enter()
	if m := s.Machines[1].(*machine); m.fence != 2 || m.rid != 2 {
		t.Errorf("the next entry has fence %s and rid %d, want 2 and 2", m.fence, m.rid)
	}
}

// BenchmarkEntry measures the five steps of an entry, without a network between the machines.
func BenchmarkEntry(b *testing.B) {
	s := newCluster(b, 3, denyQueue)
	var fx process.Effects
	var m process.Message
	deliver := process.Event{Kind: process.Deliver, Message: &m}
	step := func(p process.ID, ev *process.Event) {
		fx.Begin(p, nil)
		s.Machines[p].Step(ev, &fx)
		for i := range fx.Len() {
			if e := fx.At(i); e.Kind == process.EffectSend {
				m = *fx.Message(e)
			}
		}
	}
	acquire, release := process.Event{Kind: process.Acquire}, process.Event{Kind: process.Release}
	b.ReportAllocs()
	for b.Loop() {
		step(1, &acquire)
		step(0, &deliver)
		step(1, &deliver)
		step(1, &release)
		step(0, &deliver)
	}
}

// An entry of a client, message by message.
func Example() {
	c := &process.Config{N: 2}
	coordinator, client := Spec.New(0, c), Spec.New(1, c)
	var fx process.Effects
	step := func(p process.ID, m process.Machine, ev *process.Event) (sent process.Message) {
		fx.Begin(p, nil)
		m.Step(ev, &fx)
		for i := range fx.Len() {
			switch e := fx.At(i); e.Kind {
			case process.EffectSend:
				sent = *fx.Message(e)
				fmt.Println(Spec.MessageText(&sent, c))
			case process.EffectGrant:
				fmt.Println("inside with fence", e.Fence)
			}
		}
		return sent
	}
	ask := step(1, client, &process.Event{Kind: process.Acquire})
	answer := step(0, coordinator, &process.Event{Kind: process.Deliver, Message: &ask})
	step(1, client, &process.Event{Kind: process.Deliver, Message: &answer})
	step(1, client, &process.Event{Kind: process.Release})
	// Output:
	// REQUEST rid=1
	// GRANTED rid=1 fence=1
	// inside with fence 1
	// RELEASE rid=1
}
