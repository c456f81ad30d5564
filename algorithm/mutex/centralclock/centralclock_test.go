package centralclock

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// cluster is a host of reliable links on which every message takes one delay.
type cluster struct {
	machines []process.Machine
	fx       process.Effects
	ev       process.Event
	arriving []process.Message // what the present delay delivers
	links    []process.Message
	inside   process.ID
	fence    process.Fence // of the latest entry
	sent     int
	entries  int
}

func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := &process.Config{N: n}
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	s := &cluster{inside: process.None}
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
		case process.EffectGrant:
			s.inside, s.fence = p, e.Fence
			s.entries++
		}
	}
}

func (s *cluster) post(m process.Message) {
	s.links = append(s.links, m) // no message of this algorithm has slices
	s.sent++
}

// delay lets one message delay pass: all that is in flight arrives.
func (s *cluster) delay() {
	s.arriving, s.links = s.links, s.arriving[:0]
	for i := range s.arriving {
		m := &s.arriving[i]
		s.give(m.To, process.Event{Kind: process.Deliver, Message: m})
	}
}

// enter returns how many delays pass until somebody is inside.
func (s *cluster) enter(t testing.TB) (delays int) {
	for ; s.inside == process.None; delays++ {
		if len(s.links) == 0 {
			t.Fatal("nobody is inside and nothing is in flight")
		}
		s.delay()
	}
	return delays
}

// quiet lets everything arrive.
func (s *cluster) quiet() {
	for len(s.links) > 0 {
		s.delay()
	}
}

// leave ends the critical section after everything that is under way has arrived.
func (s *cluster) leave() process.ID {
	s.quiet()
	p := s.inside
	s.inside = process.None
	s.give(p, process.Event{Kind: process.Release})
	return p
}

func (s *cluster) request(p process.ID) { s.give(p, process.Event{Kind: process.Acquire}) }

// requestAll lets everybody but the clock ask.
func (s *cluster) requestAll() {
	for p := 1; p < len(s.machines); p++ {
		s.request(process.ID(p))
	}
}

// exactly returns what Spec claims exactly for a regime.
func exactly(t *testing.T, metric process.Metric, regime process.Regime, n int) float64 {
	t.Helper()
	for _, cost := range Spec.Claims.Costs {
		if cost.Metric == metric && (cost.Regime == regime || cost.Regime == process.AnyLoad) && cost.Exact != nil {
			return cost.Exact.Eval(process.Params{N: n})
		}
	}
	t.Fatalf("no exact %s is claimed for %s", metric, regime)
	return 0
}

func TestCostIdle(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, n)
		for p := process.ID(1); p < process.ID(n); p++ {
			before := s.sent
			s.request(p)
			if got, want := s.enter(t), exactly(t, process.ClientDelay, process.Idle, n); float64(got) != want {
				t.Errorf("N=%d: client delay %d, want %v", n, got, want)
			}
			s.leave()
			s.quiet()
			want := exactly(t, process.MessagesPerEntry, process.Idle, n)
			if got := s.sent - before; float64(got) != want {
				t.Errorf("N=%d: %d messages for an entry, want %v", n, got, want)
			}
		}
	}
}

// TestCostSaturated measures 100 entries after a warm-up of 100. With only one client,
// nobody ever waits, so N starts at 3.
func TestCostSaturated(t *testing.T) {
	const window = 100
	for n := 3; n <= 50; n++ {
		s, before, delays := newCluster(t, n), 0, 0
		s.requestAll()
		s.enter(t)
		for round := range 2 * window {
			if round == window {
				before, delays = s.sent, 0
			}
			s.request(s.leave())
			delays += s.enter(t)
		}
		if got, want := float64(s.sent-before)/window, exactly(t, process.MessagesPerEntry, process.Saturated, n); got != want {
			t.Errorf("N=%d: %v messages per entry, want %v", n, got, want)
		}
		if got, want := float64(delays)/window, exactly(t, process.SyncDelay, process.Saturated, n); got != want {
			t.Errorf("N=%d: synchronization delay %v, want %v", n, got, want)
		}
		if s.fence != process.Fence(s.entries) {
			t.Errorf("N=%d: the fence of entry %d is %s", n, s.entries, s.fence)
		}
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	s := newCluster(t, 5)
	s.request(0)
	s.requestAll()
	s.enter(t)
	entry := func() {
		s.request(s.leave())
		s.enter(t)
	}
	if allocs := testing.AllocsPerRun(1000, entry); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
}

// TestClock: stamps follow the reading of the clock. If the clock stands still or goes
// back, they grow by one.
func TestClock(t *testing.T) {
	m := Spec.New(0, &process.Config{N: 4})
	var fx process.Effects
	asks := []struct {
		from process.ID
		now  process.Duration
		want uint64
	}{{1, 100, 100}, {2, 100, 101}, {3, 90, 102}, {1, 103, 103}, {2, 200, 200}, {3, -5, 201}}
	for i, a := range asks {
		fx.Begin(0, nil)
		msg := process.Message{Type: ask, From: a.from, Seq: uint64(i + 1)}
		m.Step(&process.Event{Kind: process.Deliver, Message: &msg, Now: a.now}, &fx)
		answer := fx.Message(fx.At(fx.Len() - 1))
		if answer.Clock != a.want || answer.Fence != process.Fence(i+1) {
			t.Errorf("at %d the stamp is %d with fence %s, want %d with %d", a.now, answer.Clock, answer.Fence, a.want, i+1)
		}
	}
}

// TestBase: machines that are created again continue above the numbers that they used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2)
	s.request(1)
	s.enter(t)
	if idler := s.machines[1].(process.Idler); idler.Idle() {
		t.Error("a machine is idle while it is inside")
	}
	s.leave()
	s.quiet()
	if idler := s.machines[1].(process.Idler); !idler.Idle() {
		t.Error("a machine is not idle after its entry")
	}
	for p, m := range s.machines {
		s.machines[p] = Spec.New(process.ID(p), &process.Config{N: 2, Base: process.HighWater(m)})
	}
	s.request(1)
	s.enter(t)
	if m := s.machines[1].(*machine); m.fence != 2 || m.stamp != 2 || m.number != 2 {
		t.Errorf("the next entry has fence %s, stamp %d and number %d, want 2, 2 and 2", m.fence, m.stamp, m.number)
	}
}
