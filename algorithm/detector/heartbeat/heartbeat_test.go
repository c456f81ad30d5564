package heartbeat

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T)         { processtest.Conform(t, Spec) }
func TestConformReliable(t *testing.T) { processtest.Conform(t, Reliable) }

func TestScripts(t *testing.T)         { processtest.Script(t, Spec, "testdata/heartbeat") }
func TestScriptsReliable(t *testing.T) { processtest.Script(t, Reliable, "testdata/reliable") }

// step gives an event to a new process 0 of n, after it has started.
func started(t testing.TB, spec *process.Spec, n int) (process.Machine, *process.Effects) {
	t.Helper()
	c := &process.Config{N: n}
	if err := spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	m, fx := spec.New(0, c), &process.Effects{}
	fx.Begin(0, nil)
	m.Step(&process.Event{Kind: process.Start, Incarnation: 1}, fx)
	return m, fx
}

func TestMessagesPerPeriod(t *testing.T) {
	beat := process.Event{Kind: process.Fire, Timer: beatTimer}
	for n := 1; n <= 50; n++ {
		m, fx := started(t, Spec, n)
		fx.Begin(0, nil)
		if n > 1 {
			m.Step(&beat, fx)
		}
		sent := 0
		for i := range fx.Len() {
			if fx.At(i).Kind == process.EffectBroadcast {
				sent += n - 1
			}
		}
		if want := Spec.Claims.Costs[0].Exact.Eval(process.Params{N: n}); float64(n*sent) != want {
			t.Errorf("N=%d: %d messages per period, want %v", n, n*sent, want)
		}
	}
}

// TestOldIncarnation: a message from before a restart may arrive after one from after it,
// if links reorder and the host does not know about incarnations.
func TestOldIncarnation(t *testing.T) {
	m, fx := started(t, Spec, 2)
	deliver := func(incarnation int64, n uint64) {
		fx.Begin(0, nil)
		m.Step(&process.Event{Kind: process.Deliver, Message: &process.Message{
			Type: alive, From: 1, Value: incarnation, Seq: n}}, fx)
	}
	deliver(2, 1)
	if fx.Len() != 3 || fx.At(1).Kind != process.EffectRejoin {
		t.Errorf("a restart had %d effects, want the rule, Rejoin and the timer", fx.Len())
	}
	deliver(1, 9)
	if fx.Len() != 1 || fx.At(0).Rule != ruleR2a {
		t.Errorf("an ALIVE of an old incarnation had %d effects, want that it is ignored", fx.Len())
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	m, fx := started(t, Spec, 100)
	msg := process.Message{Type: alive, From: 7, Value: 1}
	events := []process.Event{
		{Kind: process.Fire, Timer: beatTimer},
		{Kind: process.Deliver, Message: &msg},
		{Kind: process.Fire, Timer: checkTimer.For(7)},
		{Kind: process.Fire, Timer: checkTimer.For(7)},
	}
	allocs := testing.AllocsPerRun(1000, func() {
		msg.Seq++
		for i := range events {
			fx.Begin(0, nil)
			m.Step(&events[i], fx)
		}
	})
	if allocs != 0 {
		t.Errorf("a beat, an ALIVE and a suspicion allocate %v times", allocs)
	}
}
