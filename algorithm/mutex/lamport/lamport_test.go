package lamport

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

func newCluster(t testing.TB, n int, mode string) *cluster {
	t.Helper()
	c := &process.Config{N: n, Options: []process.OptionValue{{Name: "mode", Value: mode}}}
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
		case process.EffectBroadcast:
			m := *s.fx.Message(e)
			for q := range process.ID(len(s.machines)) {
				if m.To = q; q != p {
					s.post(m)
				}
			}
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

// quiet delivers all messages in flight.
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

func (s *cluster) requestAll() {
	for p := range s.machines {
		s.request(process.ID(p))
	}
}

func (s *cluster) request(p process.ID) { s.give(p, process.Event{Kind: process.Acquire}) }

// exactly returns what Spec claims exactly for a mode and a regime.
func exactly(t *testing.T, metric process.Metric, regime process.Regime, mode string, n int) float64 {
	t.Helper()
	for _, cost := range Spec.Claims.Costs {
		fits := (cost.Mode == mode || cost.Mode == "") && (cost.Regime == regime || cost.Regime == process.AnyLoad)
		if cost.Metric == metric && fits && cost.Exact != nil {
			return cost.Exact.Eval(process.Params{N: n})
		}
	}
	t.Fatalf("no exact %s is claimed for %s, %s", metric, mode, regime)
	return 0
}

func TestCostIdle(t *testing.T) {
	for _, mode := range []string{answer, skip} {
		for n := 2; n <= 50; n++ {
			s := newCluster(t, n, mode)
			for p := range process.ID(n) {
				before := s.sent
				s.request(p)
				if got, want := s.enter(t), exactly(t, process.ClientDelay, process.Idle, mode, n); float64(got) != want {
					t.Errorf("%s, N=%d: client delay %d, want %v", mode, n, got, want)
				}
				s.leave()
				s.quiet()
				want := exactly(t, process.MessagesPerEntry, process.Idle, mode, n)
				if got := s.sent - before; float64(got) != want {
					t.Errorf("%s, N=%d: %d messages for an entry, want %v", mode, n, got, want)
				}
			}
		}
	}
}

// TestCostSaturated measures 100 entries after a warm-up of 100. After the warm-up, each
// request is the youngest of all, so that no answer is skipped.
func TestCostSaturated(t *testing.T) {
	const window = 100
	for _, mode := range []string{answer, skip} {
		for n := 2; n <= 50; n++ {
			s, before, delays := newCluster(t, n, mode), 0, 0
			s.requestAll()
			s.enter(t)
			for round := range 2 * window {
				if round == window {
					before, delays = s.sent, 0
				}
				s.request(s.leave())
				delays += s.enter(t)
			}
			if got, want := float64(s.sent-before)/window, exactly(t, process.MessagesPerEntry, process.Saturated, answer, n); got != want {
				t.Errorf("%s, N=%d: %v messages per entry, want %v", mode, n, got, want)
			}
			if got, want := float64(delays)/window, exactly(t, process.SyncDelay, process.Saturated, mode, n); got != want {
				t.Errorf("%s, N=%d: synchronization delay %v, want %v", mode, n, got, want)
			}
			if s.fence != process.Fence(s.entries) {
				t.Errorf("%s, N=%d: the fence of entry %d is %s", mode, n, s.entries, s.fence)
			}
		}
	}
}

// TestCostOfCrossingRequests: if all processes ask at the same time, each skips the
// answers to lower ranks, which are half of all answers.
func TestCostOfCrossingRequests(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, n, skip)
		s.requestAll()
		for range n {
			s.enter(t)
			s.leave()
		}
		s.quiet()
		if want := 5 * n * (n - 1) / 2; s.sent != want || s.entries != n {
			t.Errorf("N=%d: %d messages for %d entries, want %d for %d", n, s.sent, s.entries, want, n)
		}
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	for _, mode := range []string{answer, skip} {
		if allocs := testing.AllocsPerRun(1000, contendedEntry(t, mode)); allocs != 0 {
			t.Errorf("%s: an entry allocates %v times", mode, allocs)
		}
	}
}

// contendedEntry returns one entry of a process while all others wait.
func contendedEntry(t testing.TB, mode string) func() {
	s := newCluster(t, 5, mode)
	s.requestAll()
	s.enter(t)
	return func() {
		s.request(s.leave())
		s.enter(t)
	}
}

// TestBase: machines that are created again continue above the numbers that they used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2, answer)
	s.request(1)
	s.enter(t)
	s.leave()
	s.quiet()
	for p, m := range s.machines {
		s.machines[p] = Spec.New(process.ID(p), &process.Config{N: 2, Base: process.HighWater(m)})
	}
	before := s.machines[1].(*machine).clock
	s.request(1)
	s.enter(t)
	if m := s.machines[1].(*machine); m.fence != 2 || m.own <= before {
		t.Errorf("the next entry has fence %s and time %d, want 2 and one above %d", m.fence, m.own, before)
	}
}

// TestFenceAboveBase: a fence that replaces an unknown one is above the Base of the
// instance, whatever the clock was.
func TestFenceAboveBase(t *testing.T) {
	base := process.Base{Clock: 3, Fence: process.MakeFence(7, 1000)}
	m := Spec.New(0, &process.Config{N: 2, Base: base})
	var fx process.Effects
	for _, kind := range []process.Kind{process.Acquire, process.Fail} {
		fx.Begin(0, nil)
		m.Step(&process.Event{Kind: kind, Peer: 1}, &fx)
	}
	last := fx.At(fx.Len() - 1)
	if last.Kind != process.EffectGrant || last.Fence <= base.Fence {
		t.Errorf("the last effect is %s with fence %s, want grant with one above %s", last.Kind, last.Fence, base.Fence)
	}
}

// BenchmarkSteps measures one delivery among 100 processes that all compete.
func BenchmarkSteps(b *testing.B) {
	const n = 100
	s := newCluster(b, n, answer)
	s.requestAll()
	b.ReportAllocs()
	for b.Loop() {
		for at := s.entries; s.entries == at; {
			if s.inside != process.None {
				s.request(s.leave())
			}
			s.enter(b)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(s.sent), "ns/message")
}
