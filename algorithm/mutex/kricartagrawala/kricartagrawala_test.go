package kricartagrawala

import (
	"fmt"
	"math/rand"
	"slices"
	"strconv"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// cluster is a host with reliable links. It also judges the grants that clients receive.
type cluster struct {
	k        int
	machines []process.Machine
	fx       process.Effects
	ev       process.Event
	arrived  process.Message
	links    []flight
	past     []process.Fence // of each process: the largest fence granted before, as far as messages tell
	waiting  []bool
	inside   []process.ID // in the order of entry
	fences   []process.Fence
	sent     int
}

// flight is a message on its way, and what its sender knew.
type flight struct {
	msg  process.Message
	past process.Fence
}

func newCluster(t testing.TB, n, k int) *cluster {
	t.Helper()
	c := &process.Config{N: n, Options: []process.OptionValue{{Name: "k", Value: strconv.Itoa(k)}}}
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	s := &cluster{k: k, past: make([]process.Fence, n), waiting: make([]bool, n)}
	for p := range process.ID(n) {
		s.machines = append(s.machines, Spec.New(p, c))
	}
	return s
}

func (s *cluster) give(p process.ID, ev process.Event) {
	s.ev = ev
	s.fx.Begin(p, nil)
	s.machines[p].Step(&s.ev, &s.fx)
	for i := range s.fx.Len() {
		switch e := s.fx.At(i); e.Kind {
		case process.EffectSend:
			s.post(*s.fx.Message(e))
		case process.EffectBroadcast:
			m := *s.fx.Message(e)
			for q := range process.ID(len(s.machines)) {
				if m.To = q; q != p {
					s.post(m)
				}
			}
		case process.EffectGrant:
			s.enter(p, e.Fence)
		}
	}
}

func (s *cluster) post(m process.Message) {
	s.links = append(s.links, flight{m, s.past[m.From]}) // no message of this algorithm has slices
	s.sent++
}

func (s *cluster) enter(p process.ID, f process.Fence) {
	process.Assert(f > s.past[p], "a fence is larger than those granted before it")
	s.past[p], s.waiting[p] = f, false
	s.inside, s.fences = append(s.inside, p), append(s.fences, f)
	process.Assert(len(s.inside) <= s.k, "at most k are inside")
}

func (s *cluster) deliver(i int) {
	f := s.links[i]
	s.links = slices.Delete(s.links, i, i+1)
	s.arrived = f.msg
	s.past[f.msg.To] = max(s.past[f.msg.To], f.past)
	s.give(f.msg.To, process.Event{Kind: process.Deliver, Message: &s.arrived})
}

// quiet delivers all messages in flight.
func (s *cluster) quiet() {
	for len(s.links) > 0 {
		s.deliver(0)
	}
}

func (s *cluster) request(p process.ID) {
	s.waiting[p] = true
	s.give(p, process.Event{Kind: process.Acquire})
}

// leave ends the critical section at position i among the present ones.
func (s *cluster) leave(i int) process.ID {
	p := s.inside[i]
	s.inside = slices.Delete(s.inside, i, i+1)
	s.give(p, process.Event{Kind: process.Release})
	return p
}

// TestRandomSchedules: on links that reorder, at most k processes are inside at any time,
// fences are unique and grow along messages, and no process waits in the end.
func TestRandomSchedules(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for k := 1; k <= n+1; k++ {
			for seed := range int64(40) {
				if err := randomRun(t, n, k, rand.New(rand.NewSource(seed))); err != nil {
					t.Fatalf("N=%d, k=%d, seed %d: %v", n, k, seed, err)
				}
			}
		}
	}
}

func randomRun(t *testing.T, n, k int, rng *rand.Rand) (err error) {
	defer func() {
		if broken, ok := recover().(process.Violation); ok {
			err = broken
		}
	}()
	s := newCluster(t, n, k)
	for range 400 {
		p := process.ID(rng.Intn(n))
		switch dice := rng.Intn(8); {
		case dice < 4 && len(s.links) > 0:
			s.deliver(rng.Intn(len(s.links)))
		case dice < 6 && !s.waiting[p] && !slices.Contains(s.inside, p):
			s.request(p)
		case dice == 6 && len(s.inside) > 0:
			s.leave(rng.Intn(len(s.inside)))
		}
	}
	for s.quiet(); len(s.inside) > 0; s.quiet() {
		s.leave(0)
	}
	if slices.Contains(s.waiting, true) {
		return fmt.Errorf("a process waits forever: %v", s.waiting)
	}
	slices.Sort(s.fences)
	if distinct := len(slices.Compact(slices.Clone(s.fences))); distinct != len(s.fences) {
		return fmt.Errorf("%d entries have only %d different fences", len(s.fences), distinct)
	}
	return nil
}

// TestMessagesAnyLoad: however requests and messages are scheduled, an entry costs
// between the bounds; and if late answers are many, less than the upper one.
func TestMessagesAnyLoad(t *testing.T) {
	at := slices.IndexFunc(Spec.Claims.Costs, func(c process.Cost) bool {
		return c.Metric == process.MessagesPerEntry && c.Regime == process.AnyLoad
	})
	cost, merged := Spec.Claims.Costs[at], false
	for seed := range int64(200) {
		rng := rand.New(rand.NewSource(seed))
		n := 2 + rng.Intn(8)
		k := 1 + rng.Intn(n)
		s := newCluster(t, n, k)
		for range 2000 {
			p := process.ID(rng.Intn(n))
			switch {
			case !s.waiting[p] && !slices.Contains(s.inside, p):
				s.request(p)
			case len(s.links) > 0:
				s.deliver(0)
			default:
				s.leave(rng.Intn(len(s.inside)))
			}
		}
		for s.quiet(); len(s.inside) > 0; s.quiet() {
			s.leave(0)
		}
		params := process.Params{N: n, K: k}
		got := float64(s.sent) / float64(len(s.fences))
		if lo, hi := cost.Lo.Eval(params), cost.Hi.Eval(params); got < lo || got > hi {
			t.Errorf("N=%d, k=%d: %v messages per entry, want %v to %v", n, k, got, lo, hi)
		} else {
			merged = merged || got < hi
		}
	}
	if !merged {
		t.Error("no two answers travelled together in any run")
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	s := newCluster(t, 5, 2)
	for p := range process.ID(5) {
		s.request(p)
	}
	s.quiet()
	entry := func() {
		s.fences = s.fences[:0]
		s.request(s.leave(0))
		s.quiet()
	}
	if allocs := testing.AllocsPerRun(1000, entry); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
}

func TestIdle(t *testing.T) {
	s := newCluster(t, 2, 2)
	idle := func(p process.ID) bool { return s.machines[p].(process.Idler).Idle() }
	s.request(1)
	if idle(1) {
		t.Error("a machine is idle while it is inside")
	}
	s.leave(0)
	if idle(1) {
		t.Error("a machine is idle while it is owed an answer")
	}
	s.quiet()
	if !idle(0) || !idle(1) {
		t.Error("machines are not idle after an entry")
	}
	for p, m := range s.machines {
		s.machines[p] = Spec.New(process.ID(p), &process.Config{N: 2, Base: process.HighWater(m)})
	}
	s.request(1)
	if m := s.machines[1].(*machine); m.fence != 3 || m.own != 2 {
		t.Errorf("the next entry has fence %s and time %d, want 3 and 2", m.fence, m.own)
	}
}
