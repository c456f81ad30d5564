package singhal

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// world is a host on which every message takes one delay and a critical section
// two. Timers never run out.
type world struct {
	t        testing.TB
	machines []process.Machine
	fx       process.Effects
	links    []process.Message // in flight, all due at the next tick
	now      int
	sent     int
	entries  int
	inside   process.ID
	entered  int
	fence    process.Fence
}

const section = 2

func newWorld(t testing.TB, n int) *world {
	c := &process.Config{N: n}
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, inside: process.None}
	for p := range process.ID(n) {
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
			var m process.Message
			m.CopyFrom(w.fx.Message(e))
			w.links = append(w.links, m)
			w.sent++
		case process.EffectGrant:
			if w.inside != process.None || e.Fence != w.fence+1 {
				w.t.Fatalf("process %d enters with fence %s after %s while %d is inside", p, e.Fence, w.fence, w.inside)
			}
			w.inside, w.entered, w.fence = p, w.now, e.Fence
			w.entries++
		}
	}
}

func (w *world) acquire(p process.ID) { w.give(p, process.Event{Kind: process.Acquire}) }

// tick lets one delay pass. Messages in flight arrive, and processes that have been
// inside long enough leave. It returns those that left.
func (w *world) tick() process.ID {
	w.now++
	due := w.links
	w.links = nil
	slices.SortStableFunc(due, func(a, b process.Message) int { return int(a.From) - int(b.From) })
	for i := range due {
		w.give(due[i].To, process.Event{Kind: process.Deliver, Message: &due[i]})
	}
	p := w.inside
	if p == process.None || w.now < w.entered+section {
		return process.None
	}
	w.inside = process.None
	w.give(p, process.Event{Kind: process.Release})
	return p
}

// enter lets one process enter and leave while no other process asks. It returns how long
// the process waited.
func (w *world) enter(p process.ID) int {
	asked := w.now
	w.acquire(p)
	for w.tick() != p {
		w.mustMove(asked + 20)
	}
	waited := w.entered - asked
	for len(w.links) > 0 {
		w.tick()
	}
	return waited
}

// mustMove fails a test that would wait forever.
func (w *world) mustMove(deadline int) {
	if w.now > deadline {
		w.t.Fatalf("N=%d: nobody has entered for long", len(w.machines))
	}
}

func cost(metric process.Metric, regime process.Regime) *process.Cost {
	i := slices.IndexFunc(Spec.Claims.Costs, func(c process.Cost) bool { return c.Metric == metric && c.Regime == regime })
	return &Spec.Claims.Costs[i]
}

// TestIdle: a process sends one REQ to each process that has entered since its own last
// entry. So the cost is its index in the list of processes, sorted by their last entry,
// the newest first.
func TestIdle(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for n := 1; n <= 30; n++ {
		w, recent := newWorld(t, n), make([]process.ID, n)
		for p := range recent {
			recent[p] = process.ID(p)
		}
		for range 40 * n {
			p, before := process.ID(rng.Intn(n)), w.sent
			place := slices.Index(recent, p)
			want, delay := place+1, 2
			if place == 0 {
				want, delay = 0, 0
			}
			if waited := w.enter(p); w.sent-before != want || waited != delay {
				t.Fatalf("N=%d: %d messages and %d delays, want %d and %d", n, w.sent-before, waited, want, delay)
			}
			recent = slices.Insert(slices.Delete(recent, place, place+1), 0, p)
		}
		checkMean(t, n)
	}
}

// checkMean: if all are equally likely to ask, all places are.
func checkMean(t *testing.T, n int) {
	t.Helper()
	sum := 0
	for place := 1; place < n; place++ {
		sum += place + 1
	}
	got := cost(process.MessagesPerEntry, process.Idle).Mean.Eval(process.Params{N: n})
	if want := float64(sum) / float64(n); got < want-1e-9 || got > want+1e-9 {
		t.Errorf("N=%d: the mean is claimed to be %v, it is %v", n, got, want)
	}
}

func TestSaturated(t *testing.T) {
	for n := 2; n <= 50; n++ {
		w := newWorld(t, n)
		for p := range process.ID(n) {
			w.acquire(p)
		}
		left, sent := 0, 0
		for w.entries < 6*n {
			p := w.tick()
			if p == process.None {
				w.mustMove(w.entered + 20)
				continue
			}
			w.acquire(p)
			if left++; left == 3*n {
				sent = w.sent
			}
			now := w.now
			w.tick()
			if delay := w.entered - now; left > n && delay != 1 {
				t.Fatalf("N=%d: synchronization delay %d, want 1", n, delay)
			}
		}
		got := float64(w.sent-sent) / float64(w.entries-1-3*n)
		if want := cost(process.MessagesPerEntry, process.Saturated).Exact.Eval(process.Params{N: n}); got != want {
			t.Errorf("N=%d: %v messages per entry, want %v", n, got, want)
		}
	}
}

// TestBase: machines that are created again continue above the numbers that the old ones
// used.
func TestBase(t *testing.T) {
	c := &process.Config{N: 2, Base: process.Base{Clock: 7, Fence: 5}}
	w := newWorld(t, 2)
	w.machines = []process.Machine{Spec.New(0, c), Spec.New(1, c)}
	w.fence = 5
	w.enter(1)
	if m := w.machines[1].(*machine); m.fence != 6 || m.sn[1] != 8 {
		t.Errorf("the first entry has fence %s and number %d, want 6 and 8", m.fence, m.sn[1])
	}
}

// TestEntryDoesNotAllocate moves the token to and fro between two of four.
func TestEntryDoesNotAllocate(t *testing.T) {
	w := newWorld(t, 4)
	var links [8]process.Message
	var request process.Message
	events := []process.Event{{Kind: process.Acquire}, {Kind: process.Deliver}, {Kind: process.Release}}
	step := func(p process.ID, ev *process.Event) (sent int) {
		w.fx.Begin(p, nil)
		w.machines[p].Step(ev, &w.fx)
		for i := range w.fx.Len() {
			if e := w.fx.At(i); e.Kind == process.EffectSend {
				links[sent].CopyFrom(w.fx.Message(e))
				sent++
			}
		}
		return sent
	}
	entry := func(p process.ID) {
		for asked := step(p, &events[0]); asked > 0; asked-- {
			request.CopyFrom(&links[asked-1])
			events[1].Message = &request
			if step(request.To, &events[1]) == 1 {
				events[1].Message = &links[0]
				step(p, &events[1])
				break
			}
		}
		step(p, &events[2])
	}
	allocs := testing.AllocsPerRun(1000, func() { entry(3); entry(0) })
	if allocs != 0 {
		t.Errorf("two entries allocate %v times", allocs)
	}
	if w.machines[0].(*machine).fence < 2000 {
		t.Error("nobody entered")
	}
}
