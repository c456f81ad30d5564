package maekawa

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// world is a host that looks at what clients are told.
type world struct {
	t        testing.TB
	c        *process.Config
	machines []process.Machine
	fx       process.Effects
	links    []process.Message
	now      int
	sent     int
	entries  int
	inside   process.ID
	entered  int // when
	left     int // when the last one did
	section  int
	fence    process.Fence
}

func newWorld(t testing.TB, sets [][]process.ID) *world {
	t.Helper()
	c := &process.Config{N: len(sets), Topology: process.Topology{Quorums: sets}}
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, c: c, inside: process.None, section: 2}
	for p := range process.ID(c.N) {
		w.machines = append(w.machines, Spec.New(p, c))
	}
	return w
}

func (w *world) give(p process.ID, ev process.Event) {
	w.fx.Begin(p, nil)
	w.machines[p].Step(&ev, &w.fx)
	for i := range w.fx.Len() {
		switch e := w.fx.At(i); e.Kind {
		case process.EffectSend:
			w.links = append(w.links, *w.fx.Message(e)) // no message here has slices
			w.sent++
		case process.EffectGrant:
			if w.inside != process.None || e.Fence <= w.fence {
				w.t.Fatalf("process %d enters with fence %s after %s while %d is inside", p, e.Fence, w.fence, w.inside)
			}
			w.inside, w.entered, w.fence = p, w.now, e.Fence
			w.entries++
		}
	}
}

func (w *world) acquire(p process.ID) { w.give(p, process.Event{Kind: process.Acquire}) }

func (w *world) leave() process.ID {
	p := w.inside
	w.inside = process.None
	w.give(p, process.Event{Kind: process.Release})
	return p
}

// deliver hands over the message at position i of those in flight.
func (w *world) deliver(i int) {
	m := w.links[i]
	w.links = slices.Delete(w.links, i, i+1)
	w.give(m.To, process.Event{Kind: process.Deliver, Message: &m})
}

// tick lets one delay pass. Messages in flight arrive, and processes that have been
// inside long enough leave. It returns those that left.
func (w *world) tick() process.ID {
	w.now++
	slices.SortStableFunc(w.links, func(a, b process.Message) int { return int(a.From) - int(b.From) })
	for due := len(w.links); due > 0; due-- {
		w.deliver(0)
	}
	if w.inside == process.None || w.now < w.entered+w.section {
		return process.None
	}
	return w.leave()
}

func cost(metric process.Metric, regime process.Regime) *process.Cost {
	i := slices.IndexFunc(Spec.Claims.Costs, func(c process.Cost) bool { return c.Metric == metric && c.Regime == regime })
	return &Spec.Claims.Costs[i]
}

func TestIdleCosts(t *testing.T) {
	for n := 2; n <= 57; n++ {
		for _, sets := range [][][]process.ID{process.Grid(n), process.VotingSets(n), process.TreeQuorums(n)} {
			w := newWorld(t, sets)
			for p, set := range sets {
				asked, before := w.now, w.sent
				w.acquire(process.ID(p))
				w.tick()
				w.tick()
				params := process.Params{N: n, K: len(set)}
				if w.inside != process.ID(p) || float64(w.now-asked) != cost(process.ClientDelay, process.Idle).Exact.Eval(params) {
					t.Fatalf("N=%d: process %d is not inside after %d delays", n, p, w.now-asked)
				}
				w.leave()
				w.tick()
				if want := cost(process.MessagesPerEntry, process.Idle).Exact.Eval(params); float64(w.sent-before) != want {
					t.Fatalf("N=%d: %d messages, want %v", n, w.sent-before, want)
				}
			}
		}
	}
}

// TestSaturatedCosts: every process asks again at once after leaving. K is the mean size
// of a voting set, because all processes enter equally often.
func TestSaturatedCosts(t *testing.T) {
	for n := 2; n <= 50; n++ {
		for _, sets := range [][][]process.ID{process.Grid(n), process.VotingSets(n)} {
			for _, section := range []int{0, 1, 2, 3, 10} {
				saturate(t, sets, section)
			}
		}
	}
}

// saturate measures three rounds of entries after three to warm up.
func saturate(t *testing.T, sets [][]process.ID, section int) {
	t.Helper()
	w := newWorld(t, sets)
	w.section = section
	for p := range sets {
		w.acquire(process.ID(p))
	}
	messages, ideal, delays, window := 0, 0.0, 0, 3*len(sets)
	for left := 0; left < 2*window; {
		from, before := w.now, w.entries
		p := w.tick()
		if w.now > w.entered+20 {
			t.Fatalf("N=%d: nobody enters any more", len(sets))
		}
		if w.entries > before && left > window {
			delays += w.entered - w.left
		}
		if p == process.None {
			continue
		}
		if left++; left == window {
			messages = w.sent
		}
		if left > window {
			ideal += cost(process.MessagesPerEntry, process.Saturated).Exact.Eval(process.Params{K: len(sets[p])})
		}
		w.left = from + 1
		if left < 2*window {
			w.acquire(p)
		}
	}
	if got := float64(w.sent - messages); got != ideal {
		t.Errorf("N=%d: %v messages for %d entries, want %v", len(sets), got, window, ideal)
	}
	claim, mean := cost(process.SyncDelay, process.Saturated), float64(delays)/float64(window-1)
	if mean < claim.Lo.Eval(process.Params{}) || mean > claim.Hi.Eval(process.Params{}) {
		t.Errorf("N=%d: the mean synchronization delay is %v", len(sets), mean)
	}
}

// walk is a random schedule on links that reorder. Each process asks, and may sometimes
// withdraw, until it has entered a number of times.
func walk(t *testing.T, sets [][]process.ID, seed int64, often int, withdraw bool) {
	t.Helper()
	rng := rand.New(rand.NewSource(seed))
	w := newWorld(t, sets)
	left, bound := make([]int, len(sets)), 0.0
	for {
		var asking []process.ID
		for p := range sets {
			if m := w.machines[p].(*machine); m.phase == idle && left[p] < often {
				asking = append(asking, process.ID(p))
			}
		}
		switch dice := rng.Intn(10); {
		case dice == 0 && len(asking) > 0:
			p := asking[rng.Intn(len(asking))]
			w.acquire(p)
			bound += cost(process.MessagesPerEntry, process.AnyLoad).Hi.Eval(process.Params{K: len(sets[p])})
		case dice == 1 && w.inside != process.None:
			left[w.leave()]++
		case dice == 2 && withdraw && rng.Intn(3) == 0:
			if p := process.ID(rng.Intn(len(sets))); p != w.inside {
				w.give(p, process.Event{Kind: process.Cancel})
			}
		case len(w.links) > 0:
			w.deliver(rng.Intn(len(w.links)))
		case len(asking) == 0 && w.inside == process.None:
			checkQuiet(t, w, seed)
			if !withdraw && float64(w.sent) > bound {
				t.Fatalf("N=%d, seed %d: %d messages, at most %v are claimed", len(sets), seed, w.sent, bound)
			}
			return
		}
	}
}

// checkQuiet: when everyone has entered and nothing moves, nobody waits.
func checkQuiet(t *testing.T, w *world, seed int64) {
	t.Helper()
	for p, m := range w.machines {
		if !m.(process.Idler).Idle() {
			t.Fatalf("N=%d, seed %d: nothing is in flight, and process %d is not idle: %v", w.c.N, seed, p, process.View(m, w.c))
		}
	}
}

func TestRandomWalks(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 7, 9, 12, 13} {
		for seed := range int64(40) {
			walk(t, process.Grid(n), seed, 3, seed%2 == 1)
			walk(t, process.VotingSets(n), seed, 3, seed%2 == 1)
			walk(t, process.TreeQuorums(n), seed, 3, seed%2 == 1)
		}
	}
}

// TestBase: machines that were forgotten while idle continue above the numbers that they
// used.
func TestBase(t *testing.T) {
	w := newWorld(t, process.VotingSets(3))
	enter := func(p process.ID) {
		w.acquire(p)
		for w.tick() != p {
		}
		w.tick()
	}
	enter(1)
	enter(2)
	c := *w.c
	for _, m := range w.machines {
		base := process.HighWater(m)
		c.Base.Clock, c.Base.Fence = max(c.Base.Clock, base.Clock), max(c.Base.Fence, base.Fence)
	}
	for p := range w.machines {
		w.machines[p] = Spec.New(process.ID(p), &c)
	}
	enter(0)
	if m := w.machines[0].(*machine); m.fence != 3 || m.t != 3 {
		t.Errorf("the next entry has fence %s and T=%d, want 3 and 3", m.fence, m.t)
	}
}

// TestEntryDoesNotAllocate lets all processes of a plane contend.
func TestEntryDoesNotAllocate(t *testing.T) {
	s := processtest.NewCluster(t, Spec, &process.Config{N: 7, Topology: process.Topology{Quorums: process.VotingSets(7)}})
	s.RequestAll()
	s.Enter()
	if allocs := testing.AllocsPerRun(1000, func() { s.Next() }); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
}
