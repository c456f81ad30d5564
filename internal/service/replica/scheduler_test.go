package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// fill puts commands in the second band, or the first if they belong there, all of
// sessions that are open.
func fill(l *scheduler, commands ...registry.Command) {
	for i := range commands {
		l.push(&commands[i], commands[i].Owner, l.inFirst(&commands[i], true, false))
	}
}

func many(n byte, from, count int, name string) (commands []registry.Command) {
	for sequence := from; sequence < from+count; sequence++ {
		commands = append(commands, acquire(n, uint64(sequence), name))
	}
	return commands
}

// said writes commands as session:sequence.
func said(commands []registry.Command) string {
	var all []string
	for i := range commands {
		all = append(all, fmt.Sprintf("%d:%d", commands[i].Session[15], commands[i].Sequence))
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, got []registry.Command, wanted string) {
	t.Helper()
	if said(got) != wanted {
		t.Fatalf("served\n%s\nwant\n%s", said(got), wanted)
	}
}

// A first turn is a quantum: of requests that weigh a quarter of it, four. Later turns are
// longer, and begin when all others have had their first.
func TestSessionsTakeTurns(t *testing.T) {
	l, quarter := newScheduler(), strings.Repeat("x", quantum/4-64)
	fill(l, many(1, 1, 9, quarter)...)
	fill(l, many(2, 1, 2, quarter)...)
	fill(l, many(3, 1, 5, quarter)...)
	want(t, l.draw(nil, 6*quantum/4), "1:1 1:2 1:3 1:4 2:1 2:2")
	fill(l, many(2, 3, 1, quarter)...) // comes back, behind those whose first turn is due
	want(t, l.draw(nil, 8*quantum/4), "3:1 3:2 3:3 3:4 1:5 1:6 1:7 1:8")
	want(t, l.draw(nil, quantum), "2:3 1:9 3:5") // a turn continues in the next entry
	wantEmpty(t, l)

	later := backlogQuantum / quantum * 4
	fill(l, many(1, 1, 2*later, quarter)...)
	fill(l, many(2, 1, 2*later, quarter)...)
	l.draw(nil, 2*quantum) // the first turns
	drawn := l.draw(nil, backlogQuantum+quantum)
	if n := slices.IndexFunc(drawn, func(c registry.Command) bool { return c.Session == id(2) }); n != later {
		t.Errorf("a turn of a backlog has %d requests, want %d", n, later)
	}
}

func wantEmpty(t *testing.T, l *scheduler) {
	t.Helper()
	for _, band := range []band{l.first, l.second} {
		if band.turns != (turns[account]{}) || len(band.bySession)+len(band.byPayer) != 0 {
			t.Fatalf("something is left: %+v", band)
		}
	}
	if l.count != 0 || l.bytes != 0 || len(l.longest) != 0 {
		t.Fatalf("something is left: %+v", l)
	}
}

// A client that sends one request at a time waits for the first turns of earlier clients,
// but not for their backlogs.
func TestBacklogsDelayNobody(t *testing.T) {
	l, flooders := newScheduler(), byte(64)
	for n := range flooders {
		fill(l, many(n+1, 1, 1000, "lock")...)
	}
	for sequence := uint64(1); sequence <= 20; sequence++ {
		fill(l, acquire(100, sequence, "mine"))
		before := 0
		for found := false; !found; {
			drawn := l.draw(nil, 1<<20)
			at := slices.IndexFunc(drawn, func(c registry.Command) bool { return c.Session == id(100) })
			if found = at >= 0; !found {
				at = len(drawn)
			}
			before += at
		}
		most := 0
		if sequence == 1 {
			most = int(flooders) * quantum / leastCost
		}
		if before > most {
			t.Fatalf("%d requests went before request %d, want %d at most", before, sequence, most)
		}
	}
}

// Sessions with a backlog keep half of each entry, however many sessions have few
// requests.
func TestBacklogsKeepHalf(t *testing.T) {
	l := newScheduler()
	fill(l, many(1, 1, 1000, "lock")...)
	l.draw(nil, quantum) // its first turn
	for n := byte(2); n < 200; n++ {
		fill(l, acquire(n, 1, "lock"))
	}
	const room = 64
	for range 3 {
		drawn, mine := l.draw(nil, room*leastCost), 0
		for _, c := range drawn {
			if c.Session == id(1) {
				mine++
			}
		}
		if len(drawn) != room || mine != room/2 {
			t.Fatalf("%d of %d requests are of the backlog, want %d of %d", mine, len(drawn), room/2, room)
		}
	}
}

// More sessions do not give a principal a larger share. When too many of its requests
// wait, it loses the newest ones of all its sessions.
func TestPrincipalsShare(t *testing.T) {
	l := newScheduler()
	of := func(principal string, commands []registry.Command) {
		for i := range commands {
			commands[i].Owner = principal
		}
		fill(l, commands...)
	}
	for n := byte(1); n <= 50; n++ {
		of("many", many(n, 1, 20, "lock"))
	}
	of("few", many(100, 1, 400, "lock"))
	of("few", many(101, 1, 400, "lock"))
	mine := make(map[byte]int)
	entry := l.draw(nil, 800*leastCost)
	for _, c := range entry {
		mine[min(c.Session[15], 100)+c.Session[15]/101]++
	}
	if got := mine[100] + mine[101]; len(entry) != 800 || got < 380 || got > 420 || mine[100] < 180 || mine[100] > 220 {
		t.Errorf("of %d requests, %d are of the principal with two sessions and %d of its first, want about 800, 400 and 200", len(entry), got, mine[100])
	}
	for range 100 {
		if c := l.refuse(); c.Owner != "many" {
			t.Fatalf("a request of %q is refused, which has %d bytes waiting; the other principal has %d", c.Owner, l.second.byPayer[payer{principal: "few"}].bytes, l.second.byPayer[payer{principal: "many"}].bytes)
		}
	}
	for len(l.longest) > 0 {
		l.draw(nil, 100*leastCost)
	}
	wantEmpty(t, l)
}

// Every draw takes at least one request, in order per session, however little room there
// is. No request is lost.
func TestEveryDrawTakesSomething(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		l, put, waits := newScheduler(), make(map[byte]uint64), 0
		next := make(map[byte]uint64)
		for step := 0; step < 400 || waits > 0; step++ {
			if step < 400 && rng.IntN(3) > 0 {
				n := byte(rng.IntN(12))
				put[n]++
				c := acquire(n, put[n], strings.Repeat("x", rng.IntN(1<<rng.IntN(19))))
				if n%3 > 0 {
					c.Owner = fmt.Sprint("principal ", n%3)
				}
				l.push(&c, c.Owner, n%2 == 0)
				waits++
				continue
			}
			if waits > 0 && rng.IntN(20) == 0 {
				c := l.refuse()
				n := c.Session[15]
				if waits--; c.Sequence != put[n] {
					t.Fatalf("seed %d: request %d of %d is refused, which is not the newest, %d", seed, c.Sequence, n, put[n])
				}
				put[n]--
				continue
			}
			room := 1 + rng.IntN(1<<rng.IntN(20))
			drawn := l.draw(nil, room)
			if len(drawn) == 0 && waits > 0 {
				t.Fatalf("seed %d: %d requests wait, and none gets into an entry of %d bytes", seed, waits, room)
			}
			waits -= len(drawn)
			for _, c := range drawn {
				n := c.Session[15]
				if next[n]++; c.Sequence != next[n] {
					t.Fatalf("seed %d: request %d of session %d comes where %d was due", seed, c.Sequence, n, next[n])
				}
			}
		}
		wantEmpty(t, l)
	}
}

// What is heavier than a turn is paid for in later turns.
func TestHeavyRequestsPay(t *testing.T) {
	l := newScheduler()
	fill(l, many(1, 1, 2, strings.Repeat("x", 6*quantum-64))...)
	fill(l, many(2, 1, 9, strings.Repeat("x", quantum-64))...)
	want(t, l.draw(nil, 1<<20), "1:1 2:1 2:2 2:3 2:4 2:5 1:2 2:6 2:7 2:8 2:9")
}

// Requests that free space go first, and leave a quarter of an entry to the others.
func TestFirstBandLeavesAQuarter(t *testing.T) {
	l := newScheduler()
	for n := byte(1); n <= 4; n++ {
		for sequence := uint64(1); sequence <= 100; sequence++ {
			fill(l, release(n, sequence, 1))
		}
	}
	fill(l, many(9, 1, 100, "")...)
	drawn := l.draw(nil, 64*leastCost)
	if got := count(drawn, registry.OpRelease); len(drawn) != 64 || got != 48 || drawn[0].Op != registry.OpRelease {
		t.Fatalf("an entry of %d has %d releases, want 48 of 64", len(drawn), got)
	}
	l = newScheduler()
	fill(l, many(9, 1, 2, "")...)
	for sequence := uint64(1); sequence <= 100; sequence++ {
		fill(l, release(1, sequence, 1))
	}
	drawn = l.draw(nil, 64*leastCost)
	if got := count(drawn, registry.OpRelease); len(drawn) != 64 || got != 62 {
		t.Fatalf("an entry of %d has %d releases, want 62: nobody needs the rest", len(drawn), got)
	}
}

func count(commands []registry.Command, op registry.Op) (n int) {
	for i := range commands {
		if commands[i].Op == op {
			n++
		}
	}
	return n
}

// The requests that may overtake acquisitions of their own session, and those that must
// not.
func TestWhatOvertakes(t *testing.T) {
	for _, c := range []struct {
		what             string
		command          registry.Command
		open, unanswered bool
		waiting          []registry.Command
		first            bool
	}{
		{what: "renewal", command: renew(1, 9), open: true, first: true},
		{what: "release of what was granted", command: release(1, 9, 1), open: true, first: true},
		{what: "release of what is not answered", command: release(1, 9, 3), open: true, unanswered: true},
		{what: "cancel of what is not answered", command: registry.Command{Op: registry.OpCancel, Session: id(1), Hold: 3}, open: true, unanswered: true, first: true},
		{what: "close", command: registry.Command{Op: registry.OpClose, Session: id(1)}, open: true, first: true},
		{what: "close behind an open", command: registry.Command{Op: registry.OpClose, Session: id(1)}, waiting: []registry.Command{open(1, 1, 1)}},
		{what: "renewal behind an open", command: renew(1, 9), waiting: []registry.Command{open(1, 1, 1)}},
		{what: "open that renews", command: open(1, 9, 1), open: true, first: true},
		{what: "open of a new session", command: open(1, 9, 1)},
		{what: "open that comes again", command: open(1, 9, 1), open: true, waiting: []registry.Command{open(1, 1, 1)}},
		{what: "revocation", command: registry.Command{Op: registry.OpRevoke, Session: id(1)}, open: true, first: true},
		{what: "end of another's session", command: registry.Command{Op: registry.OpEnd, Session: id(1)}, open: true, first: true, waiting: []registry.Command{open(1, 1, 1)}},
		{what: "update", command: registry.Command{Op: registry.OpUpdate, Session: id(1)}, open: true},
		{what: "transfer", command: registry.Command{Op: registry.OpTransfer, Session: id(1)}, open: true},
	} {
		l := newScheduler()
		for i := range c.waiting {
			l.push(&c.waiting[i], "", false)
		}
		if got := l.inFirst(&c.command, c.open, c.unanswered); got != c.first {
			t.Errorf("%s: first band %v, want %v", c.what, got, c.first)
		}
	}
}

// When too many wait, whoever has most waiting loses the newest.
func TestLongestQueueIsRefused(t *testing.T) {
	l := newScheduler()
	fill(l, many(1, 1, 3, "a")...)
	fill(l, many(2, 1, 4, "a")...)
	fill(l, release(3, 1, 1))
	want(t, []registry.Command{l.refuse(), l.refuse(), l.refuse(), l.refuse()}, "2:4 2:3 1:3 2:2")
	want(t, []registry.Command{l.refuse(), l.refuse(), l.refuse(), l.refuse()}, "1:2 2:1 1:1 3:1")
	wantEmpty(t, l)
}

// A client may send an Acquire and its Release, or an Open and its Close, without
// waiting for answers, while others flood: nothing stays behind.
func TestPipelinesKeepTheirOrder(t *testing.T) {
	c := newCluster(t, 3, 31)
	c.cfg = Config{MaxInflight: 1, MaxBatchBytes: 2000}
	c.start()
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	leader := c.await()
	leader.replica.Submit(c.now, 1, many(1, 2, 100, "flood"))
	closing := registry.Command{Op: registry.OpClose, Session: id(3), Sequence: 2}
	leader.replica.Submit(c.now, 2, []registry.Command{acquire(2, 2, "a"), release(2, 3, 2), open(3, 1, 60000*ms), closing})
	c.want(c.answerTo(id(2), 2), registry.OK)
	c.want(c.answerTo(id(2), 3), registry.OK)
	c.want(c.answerTo(id(3), 1), registry.OK)
	c.want(c.answerTo(id(3), 2), registry.OK)
	if _, alive := leader.replica.Registry().Session(id(3)); alive {
		t.Error("a session outlives the Close that followed its Open")
	}
	if locks, _ := leader.replica.Registry().Freeze().List(registry.Lock, "a", "a", 1, 0); len(locks) > 0 {
		t.Errorf("%v is held after its Release", locks)
	}
	c.run(500 * ms)
	c.same()
}

// The principal of a session pays for its requests; an anonymous session pays for itself.
func TestWhoPays(t *testing.T) {
	c := newCluster(t, 3, 33)
	c.cfg = Config{MaxInflight: 1, MaxBatchBytes: 2000}
	c.start()
	for n, owner := range map[byte]string{1: "token:a", 2: "token:a", 3: "token:b", 4: "", 5: ""} {
		command := open(n, 1, 60000*ms)
		command.Owner = owner
		c.want(c.do(command), registry.OK)
	}
	leader := c.await()
	for n := byte(1); n <= 5; n++ {
		leader.replica.Submit(c.now, 1, many(n, 2, 5, "lock"))
	}
	got := leader.replica.pending.second.byPayer
	for _, who := range []payer{{principal: "token:a"}, {principal: "token:b"}, {session: id(4)}, {session: id(5)}} {
		if got[who] == nil {
			t.Errorf("%+v has no account", who)
		}
	}
	if len(got) != 4 {
		t.Errorf("there are %d accounts, want 4", len(got))
	}
}

// A request that is sent again while it is being processed is not put into the log twice,
// and is answered over the newest stream.
func TestRequestOnItsWayIsNotTakenTwice(t *testing.T) {
	c := started(t, 3, 32)
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	leader := c.await()
	leader.replica.Submit(c.now, 1, []registry.Command{acquire(1, 2, "a")})
	leader.replica.Submit(c.now, 2, []registry.Command{acquire(1, 2, "a")})
	if got := leader.replica.Stats().Pending; got != 1 {
		t.Errorf("%d wait for the log, want 1", got)
	}
	c.run(100 * ms)
	if len(c.replies) != 1 || c.replies[0].Conn != 2 {
		t.Errorf("answered %v", c.replies)
	}
}

// However fast a session renews, it uses one slot of a round. All kept renewals are
// answered, and no others are refused because of it.
func TestRenewalsOfASessionShareOne(t *testing.T) {
	c := newCluster(t, 3, 33)
	c.cfg = Config{MaxPending: 4}
	c.start()
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	leader := c.await()
	const flood = 10000
	for sequence := uint64(2); sequence < 2+flood; sequence++ {
		leader.replica.Submit(c.now, 1, []registry.Command{renew(1, sequence)})
	}
	if got := leader.replica.rounds.renewals(); got != 1 {
		t.Errorf("%d sessions wait for a round, want 1", got)
	}
	leader.replica.Submit(c.now, 1, []registry.Command{renew(2, 2)})
	c.want(c.answerTo(id(2), 2), registry.OK)
	codes := make(map[registry.Code]int)
	for _, r := range c.replies {
		codes[r.Result.Code]++
		if kept := r.Sequence >= 2+flood-maxOlder-1; kept != (r.Result.Code == registry.OK) {
			t.Fatalf("renewal %d is answered %d", r.Sequence, r.Result.Code)
		}
	}
	if codes[registry.OK] != maxOlder+1 || codes[registry.Exhausted] != flood-maxOlder-1 {
		t.Errorf("codes %v", codes)
	}
}

// A waiting claim survives the refusal of a request that only repeats it.
func TestPlaceInAQueueIsKept(t *testing.T) {
	c := newCluster(t, 3, 34)
	c.cfg = Config{MaxPending: 2}
	c.start()
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.want(c.do(acquire(2, 2, "a")), registry.Queued)
	leader := c.await()
	leader.replica.Submit(c.now, 1, []registry.Command{acquire(2, 3, "x"), acquire(2, 4, "x"), acquire(2, 2, "a")})
	c.want(c.answerTo(id(2), 2), registry.Queued)
	c.want(c.do(release(1, 3, 2)), registry.OK)
	c.want(c.answerTo(id(2), 2), registry.OK)
}
