package line

import (
	"errors"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/api"
)

func addresses(b *bench) []string {
	var open []string
	for _, o := range b.open {
		address := o.Address
		if o.Relayed {
			address += " relayed"
		}
		open = append(open, address)
	}
	slices.Sort(open)
	return open
}

func requireOpen(t *testing.T, b *bench, want ...string) {
	t.Helper()
	if got := addresses(b); !slices.Equal(got, want) {
		t.Fatalf("streams to %q, want %q", got, want)
	}
}

var three = []string{"a:1", "b:1", "c:1"}

// otherThan returns the other of two servers.
func otherThan(address string) string {
	if address == "a:1" {
		return "b:1"
	}
	return "a:1"
}

// denied connects the line to a server that does not lead and that names the other one.
func (b *bench) denied() (follower, leader string) {
	b.step(Input{})
	o := b.only()
	leader = otherThan(o.Address)
	b.welcome(o)
	b.deny(o, leader)
	return o.Address, leader
}

// A server that takes connections and never answers does not stop the search: the next
// one is tried after 150 ms, and the client gives up the silent one after a second.
func TestSilentServersAreTriedInTurn(t *testing.T) {
	b := newBench(t, 10*second, three...)
	b.step(Input{})
	first := b.only()
	b.pass(149 * ms)
	b.only()
	b.pass(301 * ms)
	requireOpen(t, b, three...)
	b.pass(550 * ms)
	if len(b.hung) == 0 || b.hung[0].Stream != first.Stream || b.hung[0].Err != ErrSilent {
		t.Fatalf("hung up %+v", b.hung)
	}
}

func TestFollowsTheLeader(t *testing.T) {
	b := newBench(t, 10*second, three...)
	b.step(Input{})
	first := b.only()
	b.welcome(first)
	b.deny(first, "d:1") // one that is not configured
	requireOpen(t, b, "d:1")
	b.welcome(b.only())
	if b.l.Server() != "d:1" {
		t.Fatalf("uses %q", b.l.Server())
	}
	b.pass(60 * second)
	requireOpen(t, b, "d:1")
}

// Two servers that name each other are not followed forever without a pause.
func TestNamingsAreFollowedThreeTimes(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.step(Input{})
	for range 4 {
		o := b.only()
		b.welcome(o)
		other := "a:1"
		if o.Address == other {
			other = "b:1"
		}
		b.deny(o, other)
	}
	requireOpen(t, b)
	if wait := b.l.Next() - b.now; wait < 5*ms || wait > longestBackoff {
		t.Fatalf("pauses for %d ns", wait)
	}
}

// While the server in use leaves a request unanswered, others are tried beside it. The
// first that carries out a request replaces it.
func TestAnUnansweredRequestStartsASearch(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.attach()
	slow := b.only()
	other := otherThan(slow.Address)
	b.acquire()
	b.pass(499 * ms)
	b.only()
	b.pass(700 * ms)
	b.welcome(b.to(other))
	if b.l.Server() != slow.Address {
		t.Fatal("a welcome does not prove that a server leads")
	}
	b.requireSent(t, "2/2 acquire x", "2/2 acquire x")
	rep := &api.Reply{Session: b.newest().secret, Sequence: 2, Code: api.Code_CODE_QUEUED}
	b.receive(b.to(other), &api.ServerFrame{Replies: []*api.Reply{rep}})
	if b.l.Server() != other || len(b.open) != 1 {
		t.Fatalf("uses %q, streams %q", b.l.Server(), addresses(b))
	}
}

// A server that is merely slow stays in use.
func TestASlowServerStays(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.attach()
	slow := b.only()
	b.acquire()
	b.pass(900 * ms)
	if len(b.open) == 1 {
		t.Fatal("nothing else was tried")
	}
	b.answer(2, api.Code_CODE_QUEUED)
	b.pass(200 * ms)
	if b.only().Stream != slow.Stream {
		t.Fatal("replaced")
	}
}

// A server that is tried beside the one in use welcomes the client, and then is silent. It
// is given up after 2 s: as long as its stream was open, it was not tried again.
func TestASilentProbeIsGivenUp(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.attach()
	other := otherThan(b.only().Address)
	b.acquire()
	b.pass(700 * ms)
	silent := b.to(other)
	b.welcome(silent)
	b.pass(1900 * ms)
	if b.to(other).Stream != silent.Stream {
		t.Fatal("given up too early")
	}
	b.pass(400 * ms)
	if _, open := b.open[silent.Stream]; open {
		t.Fatal("not given up")
	}
	if b.to(other).Stream == silent.Stream {
		t.Fatal("not tried again")
	}
}

// A waiting client may get no message for hours. So it pings the server, and tries others
// if there is no answer.
func TestPingsWhileACallWaits(t *testing.T) {
	b := newBench(t, 3600*second, "a:1", "b:1")
	b.attach()
	b.pass(second)
	if len(b.pings) != 0 {
		t.Fatal("pinged while nobody waits")
	}
	b.acquire()
	b.answer(2, api.Code_CODE_QUEUED)
	for range 3 { // pings that are answered
		b.pass(500 * ms)
		if len(b.pings) == 0 {
			t.Fatal("not pinged")
		}
		b.step(Input{Kind: Pong, Stream: b.pings[0].Stream})
		b.pings = nil
	}
	b.only()
	b.pass(900 * ms) // and one that is not
	if len(b.open) == 1 {
		t.Fatal("no other server was tried")
	}
}

// A client that reaches a follower but not the leader asks the follower to relay, and
// tries to reach the leader from time to time.
func TestRelayWhileTheLeaderIsOutOfReach(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	follower, leader := b.denied()
	requireOpen(t, b, leader)
	for len(b.open) == 0 || b.only().Address == leader { // refuses every connection
		for _, o := range b.open {
			b.cut(o, false)
		}
		b.pass(20 * ms)
	}
	again := b.only()
	b.welcome(again)
	b.deny(again, leader)
	requireOpen(t, b, follower+" relayed")
	b.welcome(b.only())
	b.pass(1999 * ms)
	b.only()
	b.pass(2 * ms)
	b.welcome(b.to(leader))
	requireOpen(t, b, leader)
}

// The leader was in use and does not answer any more. Once another server relays, the
// dead stream is closed. Otherwise it would count as an attempt in progress.
func TestADeadStreamToTheLeaderIsNotKept(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.attach()
	dead := b.only()
	leader, follower := dead.Address, otherThan(dead.Address)
	b.acquire()
	b.pass(700 * ms)
	b.welcome(b.to(follower))
	b.deny(b.to(follower), leader)
	b.pass(150 * ms) // the leader is tried once more, and does not answer
	b.welcome(b.to(follower))
	b.deny(b.to(follower), leader)
	relayed := b.to(follower)
	if !relayed.Relayed {
		t.Fatal("the follower is not asked to relay")
	}
	b.welcome(relayed)
	rep := &api.Reply{Session: b.newest().secret, Sequence: 2, Code: api.Code_CODE_QUEUED}
	b.receive(relayed, &api.ServerFrame{Replies: []*api.Reply{rep}})
	if b.l.using.id != relayed.Stream {
		t.Fatalf("streams to %q", addresses(b))
	}
	if _, kept := b.open[dead.Stream]; kept {
		t.Fatal("the dead stream is kept")
	}
}

// The leader did not answer, so the client adopted another server, which names the leader
// at once. The client asks the adopted server to relay.
func TestALateLeaderIsRelayed(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	follower, leader := b.denied()
	b.pass(150 * ms)
	again := b.to(follower)
	b.welcome(again)
	b.deny(again, leader)
	requireOpen(t, b, follower+" relayed")
}

func TestWrongClusterIsHopeless(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	b.l.identity = "other"
	b.step(Input{})
	b.welcome(b.only())
	if slices.ContainsFunc(b.told, func(o Output) bool { return o.Action == Hopeless }) {
		t.Fatal("one server is left to try")
	}
	b.pass(20 * ms)
	b.welcome(b.only())
	i := slices.IndexFunc(b.told, func(o Output) bool { return o.Action == Hopeless })
	if i < 0 || !errors.Is(b.told[i].Err, ErrWrongCluster) {
		t.Fatalf("told %+v", b.told)
	}
	if tried := b.l.Attempts(); len(tried) != 2 || !errors.Is(tried[0].Err, ErrWrongCluster) {
		t.Fatalf("tried %+v", tried)
	}
}

// One server that may come back is enough to continue.
func TestARefusedConnectionIsNotHopeless(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	for i := range 10 {
		b.pass(300 * ms)
		for _, o := range b.open {
			b.cut(o, o.Address == "a:1")
			break
		}
		if slices.ContainsFunc(b.told, func(o Output) bool { return o.Action == Hopeless }) {
			t.Fatalf("gave up after %d attempts", i+1)
		}
	}
}

// All addresses may have changed since the program was configured.
func TestLearnsAddresses(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	using := b.only()
	b.receive(using, &api.ServerFrame{Servers: []string{"x:1", "a:1", "y:1"}})
	if got := b.l.Servers(); !slices.Equal(got, []string{"a:1", "x:1", "y:1"}) {
		t.Fatalf("knows %q", got)
	}
	b.cut(using, false)
	b.pass(500 * ms)
	requireOpen(t, b, "a:1", "x:1", "y:1")
}

// Requests of many steps share a frame, and a stream has one frame at a time.
func TestFrames(t *testing.T) {
	b := newBench(t, 10*second)
	b.attach()
	for range 300 {
		b.l.Step(b.now, Input{Kind: Submit, Call: acquireOf("x")})
	}
	frames := func() (sizes []int) {
		for _, o := range b.l.Outputs(b.now) {
			if o.Action == Send {
				sizes = append(sizes, len(o.Frame.GetRequests()))
			}
		}
		b.l.Clear()
		return sizes
	}
	if got := frames(); !slices.Equal(got, []int{256}) {
		t.Fatalf("frames of %v requests", got)
	}
	if got := frames(); len(got) != 0 {
		t.Fatal("a second frame before the first was taken")
	}
	b.l.Step(b.now, Input{Kind: Sent, Stream: b.l.using.id})
	if got := frames(); !slices.Equal(got, []int{44}) {
		t.Fatalf("frames of %v requests", got)
	}
}

// A stopped server accepts no frames any more. An unsent Open must not wait for that
// server.
func TestAnOpenThatCannotBeSentIsAskedForElsewhere(t *testing.T) {
	b := newBench(t, second, "a:1", "b:1")
	b.step(Input{})
	stopped := b.only()
	b.welcome(stopped)
	b.l.using.busy = true // and it stays so
	b.submit(&Call{})
	b.pass(600 * ms)
	other := b.to(otherThan(stopped.Address))
	b.welcome(other)
	b.requireSent(t, "1/1 open")
}

// A server that names the leader is not lost: it is up, and told to ask another one. A server whose
// stream ends is.
func TestAServerThatNamesTheLeaderIsNotLost(t *testing.T) {
	b := newBench(t, 10*second, "a:1", "b:1")
	_, leader := b.denied()
	b.welcome(b.to(leader))
	b.cut(b.to(leader), false)
	var left []string
	for _, o := range b.told {
		if o.Action == Left {
			left = append(left, o.Leader)
		}
	}
	if !slices.Equal(left, []string{leader, ""}) {
		t.Errorf("it left servers that named %q, want %q and then none", left, leader)
	}
}
