package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// world is a state in a simple and slow form: machines that are copied by their encoding,
// and links that hold messages.
type world struct {
	states []string
	phases []int // 0 idle, 1 waiting, 2 inside
	asked  []int
	timers []map[uint64]bool
	links  map[[2]process.ID][]string // encoded messages
	gaveUp int                        // how many clients have
}

// naive explores worlds recursively and keeps each as text.
type naive struct {
	t         *testing.T
	spec      *process.Spec
	c         *process.Config
	entries   int
	unordered bool
	cancels   int
	seen      map[string]bool
	moves     uint64
	capacity  int
	two       bool // more than may be were inside
	stuck     bool // somebody waits and nothing can happen
}

func (w *world) clone() *world {
	c := &world{
		states: append([]string{}, w.states...), phases: append([]int{}, w.phases...), asked: append([]int{}, w.asked...),
		links: map[[2]process.ID][]string{}, gaveUp: w.gaveUp,
	}
	for k, q := range w.links {
		if len(q) > 0 {
			c.links[k] = append([]string{}, q...)
		}
	}
	for _, armed := range w.timers {
		copied := map[uint64]bool{}
		for k := range armed {
			copied[k] = true
		}
		c.timers = append(c.timers, copied)
	}
	return c
}

func (w *world) anyArmed() bool {
	return slices.ContainsFunc(w.timers, func(armed map[uint64]bool) bool { return len(armed) > 0 })
}

// text is the same for equal states. What is on a link without order is sorted on the
// way in.
func (w *world) text() string {
	return fmt.Sprintf("%q %v %v %v %q %d", w.states, w.phases, w.asked, w.timers, w.links, w.gaveUp)
}

// step takes an event at a process of a copy of the world.
func (n *naive) step(w *world, p process.ID, ev process.Event) *world {
	next := w.clone()
	m := n.spec.New(p, n.c)
	if w.states[p] != "" {
		if err := process.DecodeState([]byte(w.states[p]), m, n.c.N); err != nil {
			n.t.Fatal(err)
		}
	}
	switch ev.Kind {
	case process.Acquire:
		next.phases[p] = 1
		next.asked[p]++
	case process.Release:
		next.phases[p] = 0
	case process.Cancel:
		next.phases[p] = 0
		next.gaveUp++
	}
	var fx process.Effects
	fx.Begin(p, nil)
	m.Step(&ev, &fx)
	next.states[p] = string(process.AppendState(nil, m))
	for i := range fx.Len() {
		n.effect(next, p, fx.At(i), &fx)
	}
	return next
}

func (n *naive) effect(w *world, p process.ID, e *process.Effect, fx *process.Effects) {
	switch e.Kind {
	case process.EffectSend:
		n.send(w, *fx.Message(e), fx.Message(e).To)
	case process.EffectBroadcast:
		for q := range process.ID(n.c.N) {
			if q != p {
				n.send(w, *fx.Message(e), q)
			}
		}
	case process.EffectArm:
		w.timers[p][uint64(e.Timer)] = true
	case process.EffectDisarm:
		delete(w.timers[p], uint64(e.Timer))
	case process.EffectGrant:
		w.phases[p] = 2
		inside := 0
		for _, phase := range w.phases {
			inside += phase / 2
		}
		n.two = n.two || inside > n.capacity
	}
}

func (n *naive) send(w *world, m process.Message, to process.ID) {
	m.To = to
	key := [2]process.ID{m.From, to}
	text := string(m.AppendRaw(nil))
	at := len(w.links[key])
	for n.unordered && at > 0 && w.links[key][at-1] > text {
		at--
	}
	q := append([]string{}, w.links[key][:at]...)
	w.links[key] = append(append(q, text), w.links[key][at:]...)
}

func (n *naive) explore(w *world) {
	text := w.text()
	if n.seen[text] || n.two {
		return
	}
	n.seen[text] = true
	moves := n.moves
	for p := range process.ID(n.c.N) {
		switch {
		case w.phases[p] == 2:
			n.go1(n.step(w, p, process.Event{Kind: process.Release}))
		case w.phases[p] == 0 && w.asked[p] < n.entries:
			n.go1(n.step(w, p, process.Event{Kind: process.Acquire}))
		}
		for q := range process.ID(n.c.N) {
			n.deliver(w, [2]process.ID{q, p})
		}
	}
	if n.moves == moves {
		for _, phase := range w.phases {
			n.stuck = n.stuck || phase == 1 && !w.anyArmed()
		}
	}
	for p := range process.ID(n.c.N) {
		if w.phases[p] == 1 && w.gaveUp < n.cancels {
			n.go1(n.step(w, p, process.Event{Kind: process.Cancel}))
		}
	}
}

func (n *naive) go1(w *world) {
	n.moves++
	n.explore(w)
}

func (n *naive) deliver(w *world, link [2]process.ID) {
	for i, text := range w.links[link] {
		if i > 0 && (!n.unordered || text == w.links[link][i-1]) {
			continue
		}
		rest := w.clone()
		rest.links[link] = append(rest.links[link][:i:i], rest.links[link][i+1:]...)
		if len(rest.links[link]) == 0 {
			delete(rest.links, link)
		}
		var m process.Message
		if err := m.DecodeRaw([]byte(text), n.c.N); err != nil {
			n.t.Fatal(err)
		}
		n.go1(n.step(rest, link[1], process.Event{Kind: process.Deliver, Message: &m}))
	}
}

func runNaive(t *testing.T, cfg check.Config) *naive {
	c := cfg.Process
	if cfg.Spec.Needs.Topology == process.Tree {
		c.Topology.Parent = process.BinaryTree(c.N)
	}
	if cfg.Spec.Needs.Topology == process.Quorums {
		c.Topology.Quorums = process.VotingSets(c.N)
	}
	n := &naive{t: t, spec: cfg.Spec, c: &c, entries: cfg.Entries, unordered: cfg.Unordered, cancels: cfg.Cancels, capacity: 1, seen: map[string]bool{}}
	if cfg.Spec.Name == "k-ricart-agrawala" {
		n.capacity = 2
	}
	w := &world{
		states: make([]string, c.N), phases: make([]int, c.N), asked: make([]int, c.N), links: map[[2]process.ID][]string{},
	}
	for range c.N {
		w.timers = append(w.timers, map[uint64]bool{})
	}
	for p := range process.ID(c.N) {
		w = n.step(w, p, process.Event{Kind: process.Start, Incarnation: 1})
	}
	n.explore(w)
	return n
}

// TestNaive: an explorer that shares no code with the checker counts the same states and
// transitions, and reaches the same verdict.
func TestNaive(t *testing.T) {
	for _, b := range []bounds{
		{name: "ricart-agrawala", n: 2, entries: 3},
		{name: "ricart-agrawala", n: 3, entries: 1},
		{name: "ricart-agrawala", n: 3, entries: 1, change: unordered},
		{name: "lamport", n: 2, entries: 3},
		{name: "suzuki-kasami", n: 3, entries: 2},
		{name: "suzuki-kasami", n: 3, entries: 2, change: unordered},
		{name: "ricart-agrawala-token", n: 3, entries: 1},
		{name: "raymond", n: 4, entries: 1},
		{name: "raymond", n: 3, entries: 2, change: unordered},
		{name: "naimi-trehel", n: 3, entries: 2, change: unordered},
		{name: "maekawa", n: 3, entries: 1},
		{name: "maekawa-slides", n: 3, entries: 1},
		{name: "k-ricart-agrawala", n: 3, entries: 1},
		{name: "central", n: 3, entries: 1},
		{name: "central", n: 3, entries: 2, change: cancelling},
		{name: "maekawa", n: 3, entries: 1, change: cancelling},
		{name: "singhal", n: 2, entries: 2, change: func(c *check.Config) { c.Cancels, c.Unordered = 2, true }},
	} {
		cfg := b.config(t)
		cfg.Timing, cfg.Properties = check.Never, []process.Property{}
		exact := *cfg.Spec
		exact.Normal = nil
		cfg.Spec = &exact
		t.Run(b.name+" "+cfg.Bounds(), func(t *testing.T) {
			n := runNaive(t, cfg)
			r, err := check.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			n.judge(cfg)
			if !n.two && (r.States != uint64(len(n.seen)) || r.Transitions != n.moves) {
				t.Errorf("%d states, %d transitions; an explorer without tricks finds %d and %d", r.States, r.Transitions, len(n.seen), n.moves)
			}
		})
	}
}

// judge lets the checker look for what the explorer has seen, or has not.
func (n *naive) judge(cfg check.Config) {
	cfg.Properties = []process.Property{process.AtMostK, process.Progress}
	if n.capacity == 1 {
		cfg.Properties[0] = process.MutualExclusion
	}
	r, err := check.Run(n.t.Context(), cfg)
	if err != nil {
		n.t.Fatal(err)
	}
	if found := r.Verdict == check.Violated; found != (n.two || n.stuck) {
		n.t.Errorf("%s, %v; an explorer without tricks: too many inside %v, stuck %v", r.Verdict, r.Broken, n.two, n.stuck)
	}
}

// TestReductionAgrees: what is left out changes no verdict, of any algorithm.
func TestReductionAgrees(t *testing.T) {
	saved := 0
	for _, spec := range algorithm.All {
		for _, unordered := range []bool{false, true} {
			cfg := check.Config{Spec: spec, Process: process.Config{N: 3}, Unordered: unordered, MaxStates: 30_000}
			reduced := cfg
			reduced.Reduce = check.PartialOrder
			if cfg.Validate() != nil || (spec.Family == process.Agreement || spec.Family == process.Transaction) && reduced.Validate() != nil {
				continue
			}
			all, less := wholeAndReduced(t, cfg)
			if all.Verdict == check.Bounded {
				continue
			}
			if all.Broken != nil && all.Broken.Property == process.StateInvariant {
				continue // which a reduced search does not judge
			}
			same := all.Verdict == less.Verdict && (all.Broken == nil || all.Broken.Property == less.Broken.Property)
			if !same || less.States > all.States || less.Verdict == check.Proved && fmt.Sprint(all.Unreached) != fmt.Sprint(less.Unreached) {
				t.Errorf("%s, unordered %v: %s %v with %d states, reduced %s %v with %d", spec.Name, unordered,
					all.Verdict, all.Broken, all.States, less.Verdict, less.Broken, less.States)
			}
			if less.States < all.States {
				saved++
			}
		}
	}
	if saved < 10 {
		t.Errorf("the reduction leaves something out only %d times", saved)
	}
}
