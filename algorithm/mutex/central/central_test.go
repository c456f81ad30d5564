package central

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// cluster is a host of reliable links on which every message takes one delay. Timers
// never run out, except those for polls, which run out as soon as no message is in
// flight.
type cluster struct {
	machines []process.Machine
	fx       process.Effects
	links    []process.Message
	polls    []process.ID
	inside   process.ID
	sent     int
	entries  int
	requests int // REQUESTs sent
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
	s.fx.Begin(p, nil)
	s.machines[p].Step(&ev, &s.fx)
	for i := range s.fx.Len() {
		switch e := s.fx.At(i); e.Kind {
		case process.EffectSend:
			m := s.fx.Message(e)
			s.links = append(s.links, *m) // no message of this algorithm's normal run has slices
			s.sent++
			if m.Type == request {
				s.requests++
			}
		case process.EffectGrant:
			s.inside = p
			s.entries++
		case process.EffectArm:
			if e.Timer == pollTimer {
				s.polls = append(s.polls, p)
			}
		}
	}
}

// settle lets messages arrive and poll timers run out, until a client is inside or no
// event is enabled.
func (s *cluster) settle() {
	for s.inside == process.None {
		switch {
		case len(s.links) > 0:
			s.deliver()
		case len(s.polls) > 0:
			p := s.polls[0]
			s.polls = s.polls[1:]
			s.give(p, process.Event{Kind: process.Fire, Timer: pollTimer})
		default:
			return
		}
	}
}

func (s *cluster) deliver() {
	m := s.links[0]
	s.links = s.links[1:]
	s.give(m.To, process.Event{Kind: process.Deliver, Message: &m})
}

// leave ends the critical section after everything that is under way has arrived.
func (s *cluster) leave() process.ID {
	p := s.inside
	for len(s.links) > 0 {
		s.deliver()
	}
	s.inside = process.None
	s.give(p, process.Event{Kind: process.Release})
	return p
}

// formula returns what Spec claims a mode costs in a regime.
func formula(t *testing.T, mode string, regime process.Regime, p process.Params) float64 {
	t.Helper()
	for _, cost := range Spec.Claims.Costs {
		if cost.Metric == process.MessagesPerEntry && cost.Mode == mode && (cost.Regime == regime || cost.Regime == process.AnyLoad) {
			return cost.Exact.Eval(p)
		}
	}
	t.Fatalf("no cost is claimed for %s, %s", mode, regime)
	return 0
}

func TestMessagesIdle(t *testing.T) {
	for _, mode := range []string{silent, denyQueue, denyPoll} {
		for n := 2; n <= 50; n++ {
			s := newCluster(t, n, mode)
			for p := 1; p < n; p++ { // process 0 is the coordinator
				s.give(process.ID(p), process.Event{Kind: process.Acquire})
				s.settle()
				s.leave()
				s.settle()
			}
			want := formula(t, mode, process.Idle, process.Params{N: n}) * float64(n-1)
			if s.entries != n-1 || float64(s.sent) != want {
				t.Errorf("%s, N=%d: %d messages for %d entries, want %v for %d", mode, n, s.sent, s.entries, want, n-1)
			}
		}
	}
}

// TestMessagesSaturated measures 100 entries after a warm-up of 100. With only one
// client, no request is ever queued, so N starts at 3.
func TestMessagesSaturated(t *testing.T) {
	const window = 100
	for _, mode := range []string{silent, denyQueue} {
		for n := 3; n <= 50; n++ {
			s := newCluster(t, n, mode)
			for p := 1; p < n; p++ {
				s.give(process.ID(p), process.Event{Kind: process.Acquire})
			}
			before := 0
			for round := range 2 * window {
				if round == window {
					before = s.sent
				}
				s.settle()
				s.give(s.leave(), process.Event{Kind: process.Acquire})
			}
			got := float64(s.sent-before) / window
			if want := formula(t, mode, process.Saturated, process.Params{N: n}); got != want {
				t.Errorf("%s, N=%d: %v messages per entry, want %v", mode, n, got, want)
			}
		}
	}
}

func TestMessagesPolling(t *testing.T) {
	for n := 2; n <= 20; n++ {
		s := newCluster(t, n, denyPoll)
		for p := 1; p < n; p++ {
			s.give(process.ID(p), process.Event{Kind: process.Acquire})
		}
		for range n - 1 {
			s.settle()
			s.leave()
		}
		s.settle()
		// The formula is linear in p, so it adds up over the entries.
		want := formula(t, denyPoll, process.Saturated, process.Params{Polls: s.requests}) + float64(s.entries-1)
		if s.entries != n-1 || float64(s.sent) != want {
			t.Errorf("N=%d: %d messages for %d entries and %d REQUESTs, want %v", n, s.sent, s.entries, s.requests, want)
		}
	}
}

func TestClientOnCoordinatorSendsNothing(t *testing.T) {
	for n := 1; n <= 3; n++ {
		s := newCluster(t, n, denyQueue)
		for range 10 {
			s.give(0, process.Event{Kind: process.Acquire})
			s.leave()
		}
		if s.sent != 0 || s.entries != 10 {
			t.Errorf("N=%d: %d messages for %d entries, want 0 for 10", n, s.sent, s.entries)
		}
	}
}

// entryOf returns one uncontended entry of process 1, as steps of the machines.
func entryOf(t testing.TB) func() {
	s := newCluster(t, 3, denyQueue)
	var m process.Message
	deliver := process.Event{Kind: process.Deliver, Message: &m}
	acquire, release := process.Event{Kind: process.Acquire}, process.Event{Kind: process.Release}
	step := func(p process.ID, ev *process.Event) {
		s.fx.Begin(p, nil)
		s.machines[p].Step(ev, &s.fx)
		for i := range s.fx.Len() {
			if e := s.fx.At(i); e.Kind == process.EffectSend {
				m = *s.fx.Message(e)
			}
		}
	}
	return func() {
		step(1, &acquire)
		step(0, &deliver)
		step(1, &deliver)
		step(1, &release)
		step(0, &deliver)
	}
}

func TestEntryDoesNotAllocate(t *testing.T) {
	if allocs := testing.AllocsPerRun(1000, entryOf(t)); allocs != 0 {
		t.Errorf("an entry allocates %v times", allocs)
	}
}

func TestIdle(t *testing.T) {
	s := newCluster(t, 3, silent)
	coordinator, client := s.machines[0].(process.Idler), s.machines[1].(process.Idler)
	if !coordinator.Idle() || !client.Idle() {
		t.Error("new machines are not idle")
	}
	s.give(1, process.Event{Kind: process.Acquire})
	s.settle()
	if coordinator.Idle() || client.Idle() {
		t.Error("machines are idle during an entry")
	}
	s.leave()
	s.settle()
	if !coordinator.Idle() || !client.Idle() {
		t.Error("machines are not idle after an entry")
	}
}

// TestBase: a machine that was forgotten while idle continues above the numbers that it
// used.
func TestBase(t *testing.T) {
	s := newCluster(t, 2, silent)
	s.give(1, process.Event{Kind: process.Acquire})
	s.settle()
	s.leave()
	s.settle()
	for p := range s.machines {
		c := &process.Config{N: 2, Base: process.HighWater(s.machines[p])}
		s.machines[p] = Spec.New(process.ID(p), c)
	}
	s.give(1, process.Event{Kind: process.Acquire})
	s.settle()
	if m := s.machines[1].(*machine); m.fence != 2 || m.rid != 2 {
		t.Errorf("the next entry has fence %s and rid %d, want 2 and 2", m.fence, m.rid)
	}
}

func BenchmarkEntry(b *testing.B) {
	entry := entryOf(b)
	b.ReportAllocs()
	for b.Loop() {
		entry()
	}
}

// An entry of a client, message by message.
func Example() {
	c := &process.Config{N: 2}
	coordinator, client := Spec.New(0, c), Spec.New(1, c)
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
	ask := step(1, client, &process.Event{Kind: process.Acquire})
	answer := step(0, coordinator, &process.Event{Kind: process.Deliver, Message: &ask})
	step(1, client, &process.Event{Kind: process.Deliver, Message: &answer})
	step(1, client, &process.Event{Kind: process.Release})
	// Output:
	// REQUEST rid=1
	// GRANTED rid=1 fence=1
	// inside with fence 1
	// RELEASE rid=1
}
