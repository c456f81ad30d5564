package raymond

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

var trees = []struct {
	name string
	of   func(int) []process.ID
}{
	{"binary", process.BinaryTree}, {"star", process.Star}, {"line", process.Line},
}

func tree(n int, of func(int) []process.ID) *process.Config {
	return &process.Config{N: n, Topology: process.Topology{Parent: of(n), Coordinator: process.ID(n / 2)}}
}

// distance counts the edges between two processes: those of the two ways to the
// root that are not on both.
func distance(parent []process.ID, a, b process.ID) int {
	height := map[process.ID]int{}
	for h := 0; a != process.None; h++ {
		height[a] = h
		a = parent[a]
	}
	for d := 0; ; d++ {
		if h, ok := height[b]; ok {
			return d + h
		}
		b = parent[b]
	}
}

func TestCostIdle(t *testing.T) {
	for _, shape := range trees {
		for n := 1; n <= 50; n++ {
			c := tree(n, shape.of)
			h := newHost(t, c, 3)
			at := c.Topology.Coordinator
			for i := range 3 * n {
				p := process.ID(7 * i % n)
				params := process.Params{N: n, Distance: distance(c.Topology.Parent, p, at)}
				before := h.sent
				delay := h.entry(p)
				if got, want := float64(h.sent-before), exact(t, process.MessagesPerEntry, process.Idle, params); got != want {
					t.Errorf("%s of %d: %v messages over %d edges, want %v", shape.name, n, got, params.Distance, want)
				}
				if want := exact(t, process.ClientDelay, process.Idle, params); float64(delay) != want {
					t.Errorf("%s of %d: client delay %d over %d edges, want %v", shape.name, n, delay, params.Distance, want)
				}
				at = p
			}
		}
	}
}

func TestCostSaturated(t *testing.T) {
	for _, shape := range trees {
		for _, section := range []int{0, 1, 5} {
			for n := 2; n <= 50; n++ {
				checkSaturated(t, shape.name, tree(n, shape.of), section)
			}
		}
	}
}

func checkSaturated(t *testing.T, shape string, c *process.Config, section int) {
	const rounds = 4
	h := newHost(t, c, section)
	h.saturate(t, 3*c.N, rounds*c.N)
	params, window := process.Params{N: c.N}, float64(rounds*c.N)
	if got, want := float64(h.sent), exact(t, process.MessagesPerEntry, process.Saturated, params)*window; got != want {
		t.Errorf("%s of %d, E=%d: %v messages for %v entries, want %v", shape, c.N, section, got, window, want)
	}
	if got, want := float64(h.waited), exact(t, process.SyncDelay, process.Saturated, params)*window; got != want {
		t.Errorf("%s of %d, E=%d: synchronization delays of %v for %v entries, want %v", shape, c.N, section, got, window, want)
	}
	for p, entered := range h.entered {
		if entered < rounds+2 || entered > rounds+4 {
			t.Errorf("%s of %d, E=%d: process %d entered %d times in %d rounds", shape, c.N, section, p, entered, rounds+3)
		}
	}
}

func TestAlone(t *testing.T) {
	h := newHost(t, tree(1, process.Line), 0)
	for range 3 {
		h.entry(0)
	}
	if h.sent != 0 || h.fence != 3 {
		t.Errorf("%d messages and fence %s after 3 entries, want 0 and 3", h.sent, h.fence)
	}
}

// TestBase: fences start above those of machines before.
func TestBase(t *testing.T) {
	c := tree(3, process.Line)
	c.Base = process.Base{Fence: 7}
	h := newHost(t, c, 0)
	h.entry(2)
	h.entry(0)
	if h.fence != 9 {
		t.Errorf("the second fence above 7 is %s, want 9", h.fence)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	h := newHost(t, tree(20, process.BinaryTree), 1)
	h.saturate(t, 100, 100)
	if allocs := testing.AllocsPerRun(1000, h.tick); allocs != 0 {
		t.Errorf("one delay under saturation allocates %v times", allocs)
	}
}

// The token comes from one end of a line to the other.
func Example() {
	c := tree(2, process.Line)
	c.Topology.Coordinator = 0
	holder, client := Spec.New(0, c), Spec.New(1, c)
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
	step(0, holder, &process.Event{Kind: process.Start})
	ask := step(1, client, &process.Event{Kind: process.Acquire})
	answer := step(0, holder, &process.Event{Kind: process.Deliver, Message: &ask})
	step(1, client, &process.Event{Kind: process.Deliver, Message: &answer})
	// Output:
	// REQ
	// PRIV f=0
	// inside with fence 1
}
