package tokenring

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// claimed returns the first cost in Spec of a metric in a regime.
func claimed(t testing.TB, metric process.Metric, regime process.Regime) process.Cost {
	t.Helper()
	for _, cost := range Spec.Claims.Costs {
		if cost.Metric == metric && cost.Regime == regime {
			return cost
		}
	}
	t.Fatalf("no %s is claimed for %s", metric, regime)
	return process.Cost{}
}

func ring(n int, mode string) *process.Config {
	return &process.Config{N: n, Options: []process.OptionValue{{Name: "mode", Value: mode}}}
}

// TestDelayIdle asks at every process for every place of the token. The longest
// delay is that of a process which the token has just left.
func TestDelayIdle(t *testing.T) {
	cost := claimed(t, process.ClientDelay, process.Idle)
	for n := 2; n <= 30; n++ {
		h := newHost(t, ring(n, plain), 0)
		params := process.Params{N: n}
		lo, hi := n, 0
		for p := range process.ID(n) {
			for range n {
				delay := h.entry(p)
				lo, hi = min(lo, delay), max(hi, delay)
				h.tick()
			}
			for range p {
				h.tick()
			}
		}
		if float64(lo) < cost.Lo.Eval(params) || float64(hi) != cost.Hi.Eval(params) {
			t.Errorf("N=%d: client delays from %d to %d, want %v to %v", n, lo, hi, cost.Lo.Eval(params), cost.Hi.Eval(params))
		}
	}
}

func TestCostSaturated(t *testing.T) {
	messages := claimed(t, process.MessagesPerEntry, process.Saturated).Exact
	delay := claimed(t, process.SyncDelay, process.Saturated).Exact
	for _, mode := range []string{plain, acks} {
		for n := 2; n <= 50; n++ {
			h := newHost(t, ring(n, mode), n%3)
			h.saturate(t, 3*n, 4*n)
			params, window := process.Params{N: n}, float64(4*n)
			if got, want := float64(h.sent), messages.Eval(params)*window; got != want {
				t.Errorf("%s, N=%d: %v messages for %v entries, want %v", mode, n, got, window, want)
			}
			if got, want := float64(h.waited), delay.Eval(params)*window; got != want {
				t.Errorf("%s, N=%d: synchronization delays of %v for %v entries, want %v", mode, n, got, window, want)
			}
			for p, entered := range h.entered {
				if entered != 7 {
					t.Errorf("%s, N=%d: process %d entered %d times in 7 rounds", mode, n, p, entered)
				}
			}
		}
	}
}

// TestBase: fences start above those of machines before.
func TestBase(t *testing.T) {
	c := ring(2, plain)
	c.Base = process.Base{Fence: 7}
	h := newHost(t, c, 0)
	h.entry(1)
	h.entry(0)
	if h.fence != 9 {
		t.Errorf("the second fence above 7 is %s, want 9", h.fence)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	for _, mode := range []string{plain, acks} {
		h := newHost(t, ring(20, mode), 1)
		h.saturate(t, 100, 100)
		if allocs := testing.AllocsPerRun(1000, h.tick); allocs != 0 {
			t.Errorf("%s: one delay under saturation allocates %v times", mode, allocs)
		}
	}
}

// The token goes round once, and stops where somebody waits.
func Example() {
	c := &process.Config{N: 3}
	machines := []process.Machine{Spec.New(0, c), Spec.New(1, c), Spec.New(2, c)}
	var fx process.Effects
	step := func(p process.ID, ev *process.Event) (sent process.Message) {
		fx.Begin(p, nil)
		machines[p].Step(ev, &fx)
		for i := range fx.Len() {
			switch e := fx.At(i); e.Kind {
			case process.EffectSend:
				sent = *fx.Message(e)
				fmt.Println(Spec.MessageText(&sent, c), "to", c.Text(sent.To))
			case process.EffectGrant:
				fmt.Println(c.Text(p), "inside with fence", e.Fence)
			}
		}
		return sent
	}
	step(2, &process.Event{Kind: process.Acquire})
	msg := step(0, &process.Event{Kind: process.Start})
	msg = step(1, &process.Event{Kind: process.Deliver, Message: &msg})
	step(2, &process.Event{Kind: process.Deliver, Message: &msg})
	step(2, &process.Event{Kind: process.Release})
	// Output:
	// TOKEN h=1 f=0 to 2
	// TOKEN h=2 f=0 to 3
	// 3 inside with fence 1
	// TOKEN h=3 f=1 to 1
}
