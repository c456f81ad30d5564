package line

import (
	"errors"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/api"
)

// newHomeBench drives a line to a home.
func newHomeBench(t *testing.T, ttl int64, servers ...string) *bench {
	b := newBench(t, ttl, servers...)
	b.l.cfg.Home = true
	return b
}

// welcomeHome welcomes the line at the home with a seat.
func (b *bench) welcomeHome(o Output, seat byte) {
	b.receive(o, &api.ServerFrame{Welcome: &api.Welcome{Cluster: "c", Server: 1, Version: 1, Seat: []byte{15: seat}, LeaseNs: 1200 * ms}})
}

// settle brings the line to the home with seat 1, with a session, and returns its stream.
func (b *bench) settle() Output {
	b.step(Input{})
	o := b.only()
	b.welcomeHome(o, 1)
	b.submit(&Call{})
	b.answer(1, api.Code_CODE_OK, remaining(1200*ms))
	b.take()
	return o
}

func TestAHomePromisesNoMoreThanItsLease(t *testing.T) {
	for _, c := range []struct{ ttl, promised, margin, often int64 }{
		{10 * second, 1200 * ms, 120 * ms, 150 * ms},
		{10 * second, 700 * ms, 120 * ms, 150 * ms}, // less is left of the lease
		{300 * ms, 300 * ms, 100 * ms, 37_500_000},
		{100 * ms, 100 * ms, 33_333_333, 25 * ms},
	} {
		b := newHomeBench(t, c.ttl)
		b.step(Input{})
		b.welcomeHome(b.only(), 1)
		b.submit(&Call{})
		asked := b.now
		b.answer(1, api.Code_CODE_OK, remaining(c.promised))
		s := b.l.session
		if got, want := s.until, asked+c.promised-c.margin; got != want {
			t.Errorf("TTL %d ms: deadline %d ns after the request, want %d", c.ttl/ms, got-asked, want-asked)
		}
		if got := s.nextRenewal() - asked; got != c.often {
			t.Errorf("TTL %d ms: renewed after %d ns, want %d", c.ttl/ms, got, c.often)
		}
	}
}

func TestASessionThatHoldsStaysAtItsHome(t *testing.T) {
	for name, code := range map[string]api.Code{"a hold": api.Code_CODE_OK, "a wait": api.Code_CODE_QUEUED} {
		b := newHomeBench(t, 10*second, "a:1", "b:1")
		home := b.settle()
		b.acquire()
		b.answer(2, code, fence(7))
		s := b.l.session
		b.cut(home, false)
		for b.now+100*ms < s.until {
			b.pass(100 * ms)
			for _, o := range b.open {
				if o.Address != home.Address {
					t.Fatalf("%s: %s is tried before the deadline", name, o.Address)
				}
			}
		}
		b.pass(1500 * ms)
		if !s.gone || !slices.ContainsFunc(slices.Collect(valuesOf(b.open)), func(o Output) bool { return o.Address != home.Address }) {
			t.Fatalf("%s: no other home is tried after the deadline", name)
		}
	}
}

func valuesOf(open map[uint64]Output) func(func(Output) bool) {
	return func(yield func(Output) bool) {
		for _, o := range open {
			if !yield(o) {
				return
			}
		}
	}
}

func TestASessionThatHoldsNothingMovesAtOnce(t *testing.T) {
	b := newHomeBench(t, 10*second, "a:1", "b:1")
	home := b.settle()
	other := otherThan(home.Address)
	b.receive(home, &api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Members: []string{other}}})
	if got := b.only().Address; got != other {
		t.Fatalf("goes on at %s, want the member that was named, %s", got, other)
	}
	c := b.acquire()
	b.welcomeHome(b.only(), 2)
	b.answer(1, api.Code_CODE_OK, remaining(1200*ms))
	b.answer(2, api.Code_CODE_OK, fence(7))
	if o := b.outcome(c); o.Err != nil || o.Reply.GetFence() != 7 {
		t.Fatalf("the call ended with %v, %v", o.Reply, o.Err)
	}
}

// A server that has lost its seat has forgotten its sessions, and returns with another
// seat.
func TestASessionIsGoneWithTheSeatOfItsHome(t *testing.T) {
	b := newHomeBench(t, 10*second)
	home := b.settle()
	held, waits := b.acquire(), b.submit(acquireOf("y"))
	b.answer(2, api.Code_CODE_OK, fence(7))
	old := b.l.session
	b.cut(home, false)
	b.pass(20 * ms)
	b.welcomeHome(b.only(), 1)
	if old.gone {
		t.Fatal("gone though the home has the seat that it had")
	}
	b.cut(b.only(), false)
	b.pass(30 * ms)
	b.welcomeHome(b.only(), 2)
	if !old.gone || b.newest() == old {
		t.Fatal("the session of another seat goes on")
	}
	release := b.submit(releaseOf(held))
	if o := b.outcome(release); !errors.Is(o.Err, ErrSessionGone) {
		t.Fatalf("the release ended with %v", o.Err)
	}
	b.answer(1, api.Code_CODE_OK, remaining(1200*ms))
	b.answer(2, api.Code_CODE_OK, fence(8))
	if o := b.outcome(waits); o.Err != nil || o.Reply.GetFence() != 8 {
		t.Fatalf("the wait ended with %v, %v", o.Reply, o.Err)
	}
}

// A home forgets the requests that it refused, so a request that is sent again could be
// granted.
func TestACallThatMovedLeavesNothingBehind(t *testing.T) {
	b := newHomeBench(t, 10*second)
	b.settle()
	c := b.acquire()
	b.take()
	b.answer(2, api.Code_CODE_MOVED)
	if o := b.outcome(c); o.Reply.GetCode() != api.Code_CODE_MOVED {
		t.Fatalf("the call ended with %v, %v", o.Reply, o.Err)
	}
	b.requireSent(t, "3/3 cancel 2")
}

// A home that leaves refuses its waiters. They go to another home at once, unless their
// session still holds something, which must be released first.
func TestAHomeThatLeaves(t *testing.T) {
	for _, holds := range []bool{false, true} {
		b := newHomeBench(t, 10*second, "a:1", "b:1")
		home := b.settle()
		held := b.acquire()
		if holds {
			b.answer(2, api.Code_CODE_OK, fence(7))
		} else {
			b.answer(2, api.Code_CODE_HELD)
		}
		waits := b.submit(acquireOf("y"))
		b.answer(3, api.Code_CODE_QUEUED)
		b.take()
		b.answer(3, api.Code_CODE_NOT_MEMBER)
		if !holds {
			b.pass(300 * ms)
			other := b.to(otherThan(home.Address))
			b.welcomeHome(other, 2)
			b.answer(1, api.Code_CODE_OK, remaining(1200*ms))
			b.answer(2, api.Code_CODE_OK, fence(8))
			if o := b.outcome(waits); o.Err != nil || o.Reply.GetFence() != 8 {
				t.Fatalf("the wait ended with %v, %v", o.Reply, o.Err)
			}
			continue
		}
		b.submit(releaseOf(held))
		b.requireSent(t, "4/4 release 2")
		if b.only() != home {
			t.Fatal("the session left its home before the release")
		}
	}
}

// If a home stops, its session continues at the server that has taken it over, and
// nowhere else. What was not answered is sent again.
func TestASessionGoesOnAtTheHeir(t *testing.T) {
	for _, adopted := range []bool{true, false} {
		b := newHomeBench(t, 10*second, "a:1", "b:1", "c:1")
		home := b.settle()
		held := b.acquire()
		b.answer(2, api.Code_CODE_OK, fence(7))
		b.submit(releaseOf(held))
		b.take()
		s, heir := b.l.session, "d:1"
		b.receive(home, &api.ServerFrame{Farewell: &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Members: []string{"b:1", heir}, Heir: heir}})
		if got := b.only().Address; got != heir {
			t.Fatalf("goes on at %s, want the heir, %s", got, heir)
		}
		b.cut(b.only(), false)
		b.pass(300 * ms)
		if got := b.only().Address; got != heir {
			t.Fatalf("tries %s next, want the heir again", got)
		}
		welcome := &api.Welcome{Cluster: "c", Server: 4, Version: 1, Seat: []byte{15: 4}, LeaseNs: 1200 * ms}
		if adopted {
			welcome.Adopted = [][]byte{{15: 9}, {15: 1}}
		}
		b.receive(b.only(), &api.ServerFrame{Welcome: welcome})
		if s.gone == adopted {
			t.Fatalf("adopted %t: the session is gone: %t", adopted, s.gone)
		}
		if adopted {
			b.requireSent(t, "3/3 release 2", "4/3 renew")
			if string(s.Seat()) != string(welcome.GetSeat()) {
				t.Errorf("the session is of the seat %x", s.Seat())
			}
		}
	}
}

// A preferred home is asked first. The client leaves it after a while without requests.
func TestAHomeIsChosenAndLeft(t *testing.T) {
	b := newBench(t, second, "a:1", "b:1", "c:1")
	b.attach()
	l := &Lines{Line: b.l, prefer: "c:1"}
	l.learn("x", &api.Guard{Prefix: "x", Algorithm: "central"}, false)
	c := acquireOf("x")
	l.Step(b.now, Input{Kind: Submit, Call: c})
	l.Step(b.now, Input{})
	home := &bench{t: t, now: b.now, l: l.home, open: make(map[uint64]Output)}
	home.flush()
	if got := home.only().Address; got != "c:1" {
		t.Fatalf("%s is asked first", got)
	}
	home.welcomeHome(home.only(), 1)
	home.answer(1, api.Code_CODE_OK, remaining(1000*ms))
	home.answer(2, api.Code_CODE_OK, fence(7))
	pass := func(d int64) {
		for end := home.now + d; home.now < end; home.now += 100 * ms {
			l.Step(home.now, Input{})
			home.flush()
			for n, s := range home.l.session.pending {
				if s.extends() && !home.l.session.gone {
					home.answer(n, api.Code_CODE_OK, remaining(1000*ms))
				}
			}
		}
	}
	s := home.l.session
	pass(2 * idle)
	if s.gone {
		t.Fatal("left while something is held there")
	}
	l.Step(home.now, Input{Kind: Submit, Call: releaseOf(c)})
	home.flush()
	home.answer(home.l.session.next-1, api.Code_CODE_OK)
	pass(idle - second)
	if s.gone {
		t.Fatal("left too early")
	}
	pass(2 * second)
	if !s.gone {
		t.Fatal("not left")
	}
}
