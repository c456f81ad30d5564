package swim

import (
	"math"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// TestEveryoneHasATurn: in every order of N-1 periods, each other process is probed once,
// whatever the random choices are.
func TestEveryoneHasATurn(t *testing.T) {
	const n = 5
	var o process.Odometer
	fx := &process.Effects{}
	for again := true; again; again = o.Next() {
		m := newMachine(2, &process.Config{N: n}).(*machine)
		probed := process.NewSet(n)
		fx.Begin(2, o.Choose)
		for range n - 1 {
			p := m.next(fx)
			if p == 2 || probed.Has(p) {
				t.Fatalf("%d is probed, after %v", p, probed)
			}
			probed.Add(p)
		}
	}
}

// TestNewsHasATotalOrder: of two different beliefs just one overrides the other.
func TestNewsHasATotalOrder(t *testing.T) {
	var all []belief
	for i := range uint64(27) {
		all = append(all, belief{i / 9, i / 3 % 3, i % 3})
	}
	for i, a := range all {
		for j, b := range all {
			if a.overrides(b) != (i > j) {
				t.Errorf("%v overrides %v: %v", a, b, a.overrides(b))
			}
		}
	}
}

// TestPeriods: a probe of three processes has two turns; the limit is e/(e-1).
func TestPeriods(t *testing.T) {
	// Two probers that just began an order: both miss with 1/4. Both in the middle
	// of it: either missed is next with 1/2, and so on: by hand 1.25 and 1.3125.
	if got, want := Periods(3), (1.25+1.3125)/2; got != want {
		t.Errorf("of three processes one is probed after %v periods, want %v", got, want)
	}
	if got, want := Periods(1000), math.E/(math.E-1); math.Abs(got-want) > 0.01 {
		t.Errorf("of a thousand processes one is probed after %v periods, want about %v", got, want)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	m, fx := newMachine(0, &process.Config{N: 50}).(*machine), &process.Effects{}
	fx.Begin(0, nil)
	m.Step(&process.Event{Kind: process.Start, Incarnation: 1}, fx)
	for p := range process.ID(49) {
		m.adopt(p+1, belief{1, 0, suspected}, fx)
	}
	sent := map[process.ID]int{}
	for range 1000 {
		fx.Begin(0, nil)
		m.probe(fx)
		for i := range fx.Len() {
			if fx.At(i).Kind != process.EffectSend {
				continue
			}
			msg := fx.Message(fx.At(i))
			if len(msg.IDs) > most || len(msg.Vector) != 3*len(msg.IDs) {
				t.Fatalf("a message has news of %v: %v", msg.IDs, msg.Vector)
			}
			for _, p := range msg.IDs {
				if p != msg.To {
					sent[p]++
				}
			}
		}
	}
	for p := range process.ID(49) {
		if sent[p+1] != m.copies {
			t.Errorf("news of %d was sent %d times, want %d", p+1, sent[p+1], m.copies)
		}
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	m, fx := newMachine(0, &process.Config{N: 100}), &process.Effects{}
	msg := process.Message{Type: ping, From: 7, Subject: 7, Value: 1, IDs: []process.ID{3}, Vector: []uint64{1, 0, suspected}}
	events := []process.Event{
		{Kind: process.Fire, Timer: periodTimer},
		{Kind: process.Deliver, Message: &msg},
		{Kind: process.Fire, Timer: waitTimer},
		{Kind: process.Fire, Timer: suspicionTimer.For(3)},
	}
	fx.Begin(0, nil)
	m.Step(&process.Event{Kind: process.Start, Incarnation: 1}, fx)
	allocs := testing.AllocsPerRun(1000, func() {
		msg.Vector[1]++
		for i := range events {
			fx.Begin(0, nil)
			m.Step(&events[i], fx)
		}
	})
	if allocs != 0 {
		t.Errorf("a period, a PING with news, a PING-REQ and a failure allocate %v times", allocs)
	}
}
