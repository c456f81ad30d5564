package bully

import (
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// cluster is a host on which every message takes one D and every timer as long
// as it was armed for. Processes that are down lose what is sent to them.
type cluster struct {
	c        *process.Config
	machines []process.Machine // nil: down
	fx       process.Effects
	now      process.Duration
	pending  []pending // in the order of at, equal ones in that of their making
	sent     map[process.Type]int
	last     process.Duration // when somebody last learned who leads
	leader   []process.ID     // as each said last
}

// pending is a message, or a timer if it has no type.
type pending struct {
	at    process.Duration
	to    process.ID
	timer process.Timer
	msg   process.Message
}

func newCluster(t testing.TB, c *process.Config, down ...process.ID) *cluster {
	t.Helper()
	if err := Spec.Validate(c); err != nil {
		t.Fatal(err)
	}
	s := &cluster{c: c, sent: map[process.Type]int{}}
	for p := range process.ID(c.N) {
		s.machines = append(s.machines, Spec.New(p, c))
		s.leader = append(s.leader, process.None)
	}
	for _, p := range down {
		s.machines[p] = nil
	}
	return s
}

func (s *cluster) give(p process.ID, ev process.Event) {
	s.fx.Begin(p, nil)
	s.machines[p].Step(&ev, &s.fx)
	for i := range s.fx.Len() {
		s.interpret(p, s.fx.At(i))
	}
}

func (s *cluster) interpret(p process.ID, e *process.Effect) {
	switch e.Kind {
	case process.EffectSend:
		s.send(*s.fx.Message(e))
	case process.EffectBroadcast:
		for q := range process.ID(s.c.N) {
			if msg := *s.fx.Message(e); q != p {
				msg.To = q
				s.send(msg)
			}
		}
	case process.EffectArm:
		s.disarm(p, e.Timer)
		s.add(pending{at: s.now + e.Lo, to: p, timer: e.Timer})
	case process.EffectDisarm:
		s.disarm(p, e.Timer)
	case process.EffectElect:
		s.last, s.leader[p] = s.now, e.Peer
	}
}

func (s *cluster) send(msg process.Message) {
	s.sent[msg.Type]++
	s.add(pending{at: s.now + s.c.D(), to: msg.To, msg: msg})
}

// add keeps deliveries before timers of the same time.
func (s *cluster) add(e pending) {
	i := len(s.pending)
	for i > 0 && (s.pending[i-1].at > e.at || s.pending[i-1].at == e.at && s.pending[i-1].timer != 0 && e.timer == 0) {
		i--
	}
	s.pending = slices.Insert(s.pending, i, e)
}

func (s *cluster) disarm(p process.ID, t process.Timer) {
	s.pending = slices.DeleteFunc(s.pending, func(e pending) bool { return e.to == p && e.timer == t && t != 0 })
}

// step lets the next thing happen and reports whether there was one.
func (s *cluster) step() bool {
	if len(s.pending) == 0 {
		return false
	}
	e := s.pending[0]
	s.pending = s.pending[1:]
	s.now = e.at
	switch {
	case s.machines[e.to] == nil:
	case e.timer != 0:
		s.give(e.to, process.Event{Kind: process.Fire, Timer: e.timer})
	default:
		s.give(e.to, process.Event{Kind: process.Deliver, Message: &e.msg})
	}
	return true
}

func (s *cluster) run() {
	for s.step() {
	}
}

func (s *cluster) crash(p process.ID) {
	s.machines[p] = nil
	s.pending = slices.DeleteFunc(s.pending, func(e pending) bool { return e.to == p && e.timer != 0 })
}

// protocol is the number of messages sent that are not for recovery.
func (s *cluster) protocol() int { return s.sent[election] + s.sent[ok] + s.sent[coordinator] }

// expectHighest fails unless everyone who is up follows the highest of them.
func (s *cluster) expectHighest(t *testing.T, what string) {
	t.Helper()
	best := process.None
	for p, m := range s.machines {
		if m != nil && (best == process.None || s.c.Label(process.ID(p)) > s.c.Label(best)) {
			best = process.ID(p)
		}
	}
	for p, m := range s.machines {
		if m != nil && s.leader[p] != best {
			t.Errorf("%s: %d follows %d, want %d", what, p, s.leader[p], best)
		}
	}
}

// cost returns what Spec claims for a metric in a regime.
func cost(t *testing.T, metric process.Metric, regime process.Regime, p process.Params) float64 {
	t.Helper()
	for _, c := range Spec.Claims.Costs {
		if c.Metric == metric && c.Regime == regime {
			return c.Exact.Eval(p)
		}
	}
	t.Fatalf("no cost is claimed in %s, %s", metric, regime)
	return 0
}

// expectCost compares messages and time with what Spec claims.
func (s *cluster) expectCost(t *testing.T, regime process.Regime, p process.Params) {
	t.Helper()
	what := fmt.Sprintf("%s, N=%d, r=%d", regime, p.N, p.Rank)
	if want := cost(t, process.MessagesPerElection, regime, p); float64(s.protocol()) != want {
		t.Errorf("%s: %d messages, want %v", what, s.protocol(), want)
	}
	want := cost(t, process.ElectionTime, regime, p) * float64(s.c.D())
	if p.N > 2 && float64(s.last) != want {
		t.Errorf("%s: it took %d, want %v", what, s.last, want)
	}
	s.expectHighest(t, what)
}

// shuffled returns labels with gaps that are not in the order of ranks, and the
// ranks in the order of labels.
func shuffled(n int) (labels []process.Label, byLabel []process.ID) {
	labels, byLabel = make([]process.Label, n), make([]process.ID, n)
	for i := range n {
		p := i
		if n%2 == 1 {
			p = (i * 2) % n
		}
		labels[p], byLabel[i] = process.Label(10+7*i), process.ID(p)
	}
	return labels, byLabel
}

func TestCostOfOneStarter(t *testing.T) {
	for n := 2; n <= 50; n++ {
		labels, byLabel := shuffled(n)
		for r := 1; r < n; r++ {
			s := newCluster(t, &process.Config{N: n, Labels: labels}, byLabel[n-1])
			s.give(byLabel[r-1], process.Event{Kind: process.Campaign})
			s.run()
			s.expectCost(t, process.OneStarter, process.Params{N: n, Rank: r})
			if e, o := (n-r)*(n-r+1)/2, (n-r)*(n-r-1)/2; s.sent[election] != e || s.sent[ok] != o {
				t.Errorf("N=%d, r=%d: ELECTION %d and OK %d, want %d and %d", n, r, s.sent[election], s.sent[ok], e, o)
			}
		}
	}
}

func TestCostWhenAllStart(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, &process.Config{N: n}, process.ID(n-1))
		for p := range process.ID(n - 1) {
			s.give(p, process.Event{Kind: process.Campaign})
		}
		s.run()
		s.expectCost(t, process.AllStart, process.Params{N: n})
		if w := cost(t, process.MessagesPerElection, process.Worst, process.Params{N: n}); float64(s.protocol()) != w {
			t.Errorf("N=%d: %d messages, the worst is %v", n, s.protocol(), w)
		}
	}
}

// TestEverySubsetOfStarters: whoever starts, one leads, and nothing costs more
// than the worst case.
func TestEverySubsetOfStarters(t *testing.T) {
	for n := 2; n <= 8; n++ {
		worst := cost(t, process.MessagesPerElection, process.Worst, process.Params{N: n})
		for subset := 1; subset < 1<<(n-1); subset++ {
			s := newCluster(t, &process.Config{N: n}, process.ID(n-1))
			for p := range process.ID(n - 1) {
				if subset>>p&1 == 1 {
					s.give(p, process.Event{Kind: process.Campaign})
				}
			}
			s.run()
			s.expectHighest(t, fmt.Sprintf("N=%d, starters %b", n, subset))
			if float64(s.protocol()) > worst {
				t.Errorf("N=%d, starters %b: %d messages, the worst is %v", n, subset, s.protocol(), worst)
			}
		}
	}
}

func TestCostOfRestart(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, &process.Config{N: n})
		s.give(process.ID(n-1), process.Event{Kind: process.Restart, Incarnation: 2})
		s.run()
		if want := cost(t, process.MessagesPerElection, process.Idle, process.Params{N: n}); float64(s.protocol()) != want {
			t.Errorf("N=%d: %d messages, want %v", n, s.protocol(), want)
		}
		s.expectHighest(t, fmt.Sprintf("restart, N=%d", n))
	}
}

// TestAnnounceAll costs one more: the COORDINATOR to the one that is down.
func TestAnnounceAll(t *testing.T) {
	for n := 2; n <= 20; n++ {
		c := &process.Config{N: n, Options: []process.OptionValue{{Name: "announce", Value: all}}}
		s := newCluster(t, c, process.ID(n-1))
		s.give(0, process.Event{Kind: process.Campaign})
		s.run()
		want := cost(t, process.MessagesPerElection, process.OneStarter, process.Params{N: n, Rank: 1}) + 1
		if float64(s.protocol()) != want {
			t.Errorf("N=%d: %d messages, want %v", n, s.protocol(), want)
		}
	}
}

// TestKnownFailure: over a reliable detector the documents' N-2 is exact.
func TestKnownFailure(t *testing.T) {
	for n := 2; n <= 50; n++ {
		s := newCluster(t, &process.Config{N: n}, process.ID(n-1))
		for p := range process.ID(n - 1) {
			s.give(p, process.Event{Kind: process.Fail, Peer: process.ID(n - 1)})
		}
		s.give(process.ID(n-2), process.Event{Kind: process.Campaign})
		s.run()
		if s.protocol() != n-2 || s.last != min(1, process.Duration(n-2))*s.c.D() {
			t.Errorf("N=%d: %d messages in %d, want %d in one D", n, s.protocol(), s.last, n-2)
		}
	}
}

// TestCrashAtEveryStep: one process after the other crashes at every step of an
// election of all. When things have calmed down the lowest that is up asks again,
// as whoever needs a leader would.
func TestCrashAtEveryStep(t *testing.T) {
	const n = 4
	for victim := range process.ID(n) {
		for steps := range 40 {
			s := newCluster(t, &process.Config{N: n})
			for p := range process.ID(n) {
				s.give(p, process.Event{Kind: process.Campaign})
			}
			for i := 0; i < steps && s.step(); i++ {
			}
			s.crash(victim)
			s.run()
			s.give(lowest(s), process.Event{Kind: process.Campaign})
			s.run()
			s.expectHighest(t, fmt.Sprintf("%d crashes after %d steps", victim, steps))
		}
	}
}

func lowest(s *cluster) process.ID {
	return process.ID(slices.IndexFunc(s.machines, func(m process.Machine) bool { return m != nil }))
}

func TestElectionDoesNotAllocate(t *testing.T) {
	m := Spec.New(1, &process.Config{N: 3})
	var fx process.Effects
	msg := process.Message{Type: election, From: 0}
	events := []process.Event{
		{Kind: process.Deliver, Message: &msg}, {Kind: process.Fire, Timer: answerTimer},
		{Kind: process.Fail, Peer: 2}, {Kind: process.Rejoin, Peer: 2},
	}
	allocs := testing.AllocsPerRun(1000, func() {
		msg.Term = process.MakeTerm(msg.Term.Round()+2, 0)
		for i := range events {
			fx.Begin(1, nil)
			m.Step(&events[i], &fx)
		}
	})
	if allocs != 0 {
		t.Errorf("an election allocates %v times", allocs)
	}
}
