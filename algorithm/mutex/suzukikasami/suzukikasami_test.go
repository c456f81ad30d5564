package suzukikasami

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// exact returns what Spec claims a cost to be, the first time that it says so.
func exact(t testing.TB, metric process.Metric, regime process.Regime, p process.Params) float64 {
	t.Helper()
	for _, cost := range Spec.Claims.Costs {
		if cost.Metric == metric && cost.Regime == regime && cost.Exact != nil {
			return cost.Exact.Eval(p)
		}
	}
	t.Fatalf("no exact %s is claimed for %s", metric, regime)
	return 0
}

func TestCostIdle(t *testing.T) {
	for n := 2; n <= 50; n++ {
		h := newHost(t, &process.Config{N: n}, 3)
		params := process.Params{N: n}
		for i := range 2 * n {
			before := h.sent
			delay := h.entry(process.ID((i + 1) % n)) // never the process with the token
			if got, want := float64(h.sent-before), exact(t, process.MessagesPerEntry, process.Idle, params); got != want {
				t.Errorf("N=%d: %v messages, want %v", n, got, want)
			}
			if want := exact(t, process.ClientDelay, process.Idle, params); float64(delay) != want {
				t.Errorf("N=%d: client delay %d, want %v", n, delay, want)
			}
		}
		before := h.sent
		if delay := h.entry(0); delay != 0 || h.sent != before {
			t.Errorf("N=%d: the process with the token waited %d and sent %d messages, want 0 and 0", n, delay, h.sent-before)
		}
	}
}

func TestCostSaturated(t *testing.T) {
	for _, section := range []int{0, 1, 5} {
		for n := 2; n <= 50; n++ {
			h := newHost(t, &process.Config{N: n}, section)
			h.saturate(t, 3*n, 4*n)
			params := process.Params{N: n}
			if got, want := float64(h.sent)/float64(4*n), exact(t, process.MessagesPerEntry, process.Saturated, params); got != want {
				t.Errorf("N=%d, E=%d: %v messages per entry, want %v", n, section, got, want)
			}
			if got, want := float64(h.waited)/float64(4*n), exact(t, process.SyncDelay, process.Saturated, params); got != want {
				t.Errorf("N=%d, E=%d: synchronization delay %v, want %v", n, section, got, want)
			}
			for p, entered := range h.entered {
				if entered < 7-1 {
					t.Errorf("N=%d, E=%d: process %d entered %d times in 7 rounds", n, section, p, entered)
				}
			}
		}
	}
}

func TestAlone(t *testing.T) {
	h := newHost(t, &process.Config{N: 1}, 0)
	for range 3 {
		h.entry(0)
	}
	if h.sent != 0 || h.fence != 3 {
		t.Errorf("%d messages and fence %s after 3 entries, want 0 and 3", h.sent, h.fence)
	}
}

// TestBase: fences start above those of machines before.
func TestBase(t *testing.T) {
	h := newHost(t, &process.Config{N: 2, Base: process.Base{Clock: 70, Fence: 7}}, 0)
	h.entry(1)
	h.entry(0)
	if h.fence != 9 {
		t.Errorf("the second fence above 7 is %s, want 9", h.fence)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	h := newHost(t, &process.Config{N: 20}, 1)
	h.saturate(t, 100, 100)
	if allocs := testing.AllocsPerRun(1000, h.tick); allocs != 0 {
		t.Errorf("one delay under saturation allocates %v times", allocs)
	}
}

// A request for the token, message by message.
func Example() {
	c := &process.Config{N: 2}
	holder, client := Spec.New(0, c), Spec.New(1, c)
	var fx process.Effects
	step := func(p process.ID, m process.Machine, ev *process.Event) (sent process.Message) {
		fx.Begin(p, nil)
		m.Step(ev, &fx)
		for i := range fx.Len() {
			switch e := fx.At(i); e.Kind {
			case process.EffectSend, process.EffectBroadcast:
				sent.CopyFrom(fx.Message(e))
				sent.From = p
				fmt.Println(Spec.MessageText(&sent, c))
			case process.EffectGrant:
				fmt.Println("inside with fence", e.Fence)
			}
		}
		return sent
	}
	step(0, holder, &process.Event{Kind: process.Start})
	ask := step(1, client, &process.Event{Kind: process.Acquire})
	answer := step(0, holder, &process.Event{Kind: process.Deliver, Message: &ask})
	step(1, client, &process.Event{Kind: process.Deliver, Message: &answer})
	// Output:
	// REQ n=1
	// TOKEN LN=[0 0] Q=[] f=0
	// inside with fence 1
}
