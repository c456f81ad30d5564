package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/version"
)

const seatTTL = 1200 * ms

// seated is a server's side of its seat: it enters, and renews every twelfth of the TTL.
type seated struct {
	id       registry.SessionID
	server   uint64
	sequence uint64
	sent     map[uint64]int64 // when, by sequence
	next     int64
	report   Report
	extra    []registry.Command // to send besides, once

	lives    int64 // until when it may rely on its seat, by the answers
	silent   bool  // it sends nothing
	behind   bool  // it is in the epoch before the newest
	refusals []registry.Outcome
	answers  map[uint64]registry.Result
}

// newSeat gives a server a seat to ask for, with a number that distinguishes it from
// others.
func (c *cluster) newSeat(s *server, n byte) *seated {
	s.seat = &seated{id: registry.SessionID{0: byte(s.id), 1: n}, server: s.id, sent: make(map[uint64]int64), answers: make(map[uint64]registry.Result)}
	for id := range uint64(len(c.servers)) {
		s.seat.report.Reaches = append(s.seat.report.Reaches, id+1)
	}
	return s.seat
}

// seat lets a server's seat do what it does at a tick.
func (c *cluster) seat(s *server) {
	a, leader := s.seat, c.leader()
	if a == nil || a.silent || c.now < a.next || leader == nil || s.cut {
		return
	}
	a.next = c.now + seatTTL/12
	a.sequence++
	beat := registry.Command{Op: registry.OpRenew, Session: a.id, Sequence: a.sequence}
	if a.lives == 0 {
		beat.Op, beat.TTL, beat.Guarding = registry.OpEnter, seatTTL, &registry.Guarding{Server: s.id}
	}
	a.sent[a.sequence] = c.now
	commands := []registry.Command{beat}
	for _, extra := range a.extra {
		a.sequence++
		extra.Session, extra.Sequence = a.id, a.sequence
		commands = append(commands, extra)
	}
	a.extra = nil
	a.report.Seat, a.report.Epoch = a.id, s.replica.Registry().Guarded().Epoch
	if a.behind {
		a.report.Epoch--
	}
	leader.replica.SubmitSeat(c.now, s.id, commands, a.report)
}

func (a *seated) hear(now int64, o registry.Outcome) {
	if a == nil || o.Session != a.id {
		return
	}
	a.answers[o.Sequence] = o.Result
	sent, renewal := a.sent[o.Sequence]
	switch {
	case o.Result.Code != registry.OK:
		a.refusals = append(a.refusals, o)
	case renewal:
		a.lives = max(a.lives, sent+o.Result.Remaining)
	}
}

// guardedCluster returns a cluster at the level of guarded names, whose servers have seats and where
// central guards live/.
func guardedCluster(t *testing.T, n int, seed uint64) *cluster {
	c := newCluster(t, n, seed)
	for _, s := range c.each() {
		s.newest = version.Guarded
		c.newSeat(s, 0)
	}
	c.start()
	c.until("the level is that of guarded names", func() bool { return c.level() == version.Guarded })
	c.want(c.guard("live/", registry.Guarding{Use: view.Use{Algorithm: "central"}}), registry.OK)
	c.until("all have seats", func() bool { return len(c.view().Members) == n })
	return c
}

func (c *cluster) view() *view.Log { return c.await().replica.Registry().Guarded() }

// guard sets a guard, and returns the answer.
func (c *cluster) guard(prefix string, how registry.Guarding) registry.Result {
	c.t.Helper()
	c.asked++
	request := [16]byte{1: c.asked, 2: 1}
	s := c.await()
	s.replica.Submit(c.now, 1, []registry.Command{{Op: registry.OpGuard, Name: prefix, Guarding: &how, By: &registry.Origin{Request: request}}})
	return c.answerTo(registry.SessionID(request), 0)
}

// seatOf returns the server's seat among the members, if it has one there.
func (c *cluster) seatOf(server uint64) (registry.SessionID, bool) {
	for _, m := range c.view().Members {
		if m.Server == server {
			return registry.SeatID(m), true
		}
	}
	return registry.SessionID{}, false
}

// A server that crashes keeps its seat until the lease ends. After its restart, it must
// wait for that end, and then for a growing pause.
func TestSeatOfAServerThatReturns(t *testing.T) {
	c := guardedCluster(t, 3, 81)
	pauses := []int64{}
	for life := byte(1); life < 4; life++ {
		old, lives := c.servers[2].seat.id, c.servers[2].seat.lives
		fresh := c.newSeat(c.servers[2], life)
		var left, entered int64
		c.until("the old seat has ended and the new one begins", func() bool {
			id, seated := c.seatOf(2)
			if left == 0 && (!seated || id != old) {
				left = c.now
			}
			entered = c.now
			return seated && id == fresh.id
		})
		if left < lives {
			t.Errorf("life %d: the seat ended %d ms before what was promised", life, (lives-left)/ms)
		}
		if later := slices.ContainsFunc(fresh.refusals, func(o registry.Outcome) bool {
			return o.Result.Code == registry.Unavailable && o.Result.Remaining > 0
		}); life > 1 && !later {
			t.Errorf("life %d: nothing was told to wait: %+v", life, fresh.refusals)
		}
		pauses = append(pauses, (entered-left)/ms)
	}
	// The second enters beside the first, whose lease outlasts its pause; the third would
	// have to wait for longer, and then the second expires, too.
	for i, want := range []int64{0, 0, 4000} {
		if got := pauses[i]; got < want || got > want+300 {
			t.Errorf("the pauses are %v ms", pauses)
		}
	}
}

// A member that reports two others is suspected itself, and the others are not. Its seat
// lives until the promised time is over.
func TestShunnedSeatExpires(t *testing.T) {
	c := guardedCluster(t, 3, 82)
	deaf := c.servers[3].seat
	deaf.report.Complains = []uint64{1, 2}
	began := c.now
	c.until("the seat has ended", func() bool { _, seated := c.seatOf(3); return !seated })
	if c.now < deaf.lives || c.now-began < seatTTL/2 {
		t.Errorf("the seat ended %d ms after the complaint, %d ms before what was promised", (c.now-began)/ms, (deaf.lives-c.now)/ms)
	}
	if c.now > deaf.lives+300*ms {
		t.Errorf("the seat ended %d ms after what was promised", (c.now-deaf.lives)/ms)
	}
	c.run(3000 * ms)
	if l := c.view(); len(l.Members) != 2 {
		t.Errorf("the members are %v", l.Members)
	}
}

// What a member says of the members of an earlier epoch means other seats: those that two
// servers had before they came back, for example.
func TestComplaintsOfAnEarlierEpoch(t *testing.T) {
	c := guardedCluster(t, 3, 92)
	behind := c.servers[3].seat
	behind.behind, behind.report.Complains, behind.report.Doubts = true, []uint64{1, 2}, []uint64{1}
	c.servers[2].seat.behind, c.servers[2].seat.report.Doubts = true, []uint64{1}
	c.run(2 * seatTTL)
	if l := c.view(); len(l.Members) != 3 || len(l.Seats) != 3 {
		t.Errorf("the members are %v, with the seats %v", l.Members, l.Seats)
	}
	behind.behind = false
	c.until("the seat has ended", func() bool { _, seated := c.seatOf(3); return !seated })
}

// A failure detector that doubts a member again and again costs it its seat each time. The
// pauses between its seats bound how many epochs begin because of that (S5).
func TestAFlappingDetector(t *testing.T) {
	c := guardedCluster(t, 3, 84)
	doubt, life := false, byte(0)
	seat, epochs, seats := c.servers[3].seat, c.view().Epoch, 1
	for until := c.now + 70_000*ms; c.now < until; {
		c.run(50 * ms)
		doubt = !doubt
		for _, id := range []uint64{1, 2} {
			if c.servers[id].seat.report.Doubts = nil; doubt {
				c.servers[id].seat.report.Doubts = []uint64{3}
			}
		}
		if slices.ContainsFunc(seat.refusals, func(o registry.Outcome) bool { return o.Result.Code == registry.SessionGone }) || c.now > seat.lives && seat.lives != 0 {
			life++
			seat = c.newSeat(c.servers[3], life)
			seats++
		}
	}
	begun := c.view().Epoch - epochs
	t.Logf("%d epochs, %d seats", begun, seats)
	// Pauses of 1, 2, 4, 8, 16 and 32 s fit into the time: six seats, which come and go.
	if begun > 14 || begun < 6 {
		t.Errorf("%d epochs began in 70 s", begun)
	}
	if _, seated := c.seatOf(1); !seated {
		t.Error("who doubts has lost its seat")
	}
}

// A server that outlives a majority keeps its seat when they return: it complains of both,
// whose old seats are still there, but they do not renew them.
func TestTheSurvivorKeepsItsSeat(t *testing.T) {
	c := guardedCluster(t, 3, 91)
	survivor := c.servers[3].seat
	for _, id := range []uint64{1, 2} {
		c.crash(c.servers[id])
	}
	c.run(5 * seatTTL) // its lease is over, and nobody ends the seats
	survivor.report.Complains, survivor.report.Reaches = []uint64{1, 2}, nil
	for _, id := range []uint64{1, 2} {
		c.restart(c.servers[id])
		c.newSeat(c.servers[id], 1)
	}
	c.until("the old seats have ended", func() bool {
		_, first := c.seatOf(1)
		_, second := c.seatOf(2)
		return !first && !second
	})
	survivor.report = Report{Reaches: []uint64{1, 2, 3}}
	c.until("all have seats", func() bool { return len(c.view().Members) == 3 })
	if id, _ := c.seatOf(3); id != survivor.id || c.now > survivor.lives {
		t.Errorf("the survivor lost its seat, and has %v", id)
	}
}

// The worst is in most complaints; complaints are about pairs, whoever makes them. They count
// while both renew their seats.
func TestWhoIsShunned(t *testing.T) {
	members := func(n uint64) map[uint64]view.Seat {
		m := make(map[uint64]view.Seat)
		for id := range n {
			m[id+1] = view.Seat{Server: id + 1, ID: [2]uint64{id + 1}}
		}
		return m
	}
	for _, c := range []struct {
		name    string
		n       uint64
		reports map[uint64]Report
		want    uint64
	}{
		{"nobody complains", 3, map[uint64]Report{1: {Epoch: 5}, 2: {Epoch: 5}}, 0},
		{"one is deaf", 4, map[uint64]Report{2: {Complains: []uint64{1, 3, 4}}, 1: {Complains: []uint64{2}}, 3: {}, 4: {}}, 2},
		{"who does not renew", 3, map[uint64]Report{3: {Epoch: 5, Complains: []uint64{1, 2}}}, 0},
		{"one of them does not renew", 4, map[uint64]Report{3: {Complains: []uint64{1, 2}}, 2: {Complains: []uint64{1}}}, 3},
		{"a pair that both tell is one", 4, map[uint64]Report{3: {Complains: []uint64{4}}, 4: {Complains: []uint64{3}}, 2: {Complains: []uint64{3}}}, 3},
		{"the older epoch", 3, map[uint64]Report{3: {Epoch: 6, Complains: []uint64{2}}, 2: {Epoch: 5}}, 2},
		{"not the leader", 3, map[uint64]Report{1: {Complains: []uint64{2}}, 2: {}}, 2},
		{"the higher id", 3, map[uint64]Report{3: {Complains: []uint64{2}}, 2: {}}, 3},
		{"complaints of who is no member", 3, map[uint64]Report{1: {Complains: []uint64{9}}}, 0},
		{"most doubt", 4, map[uint64]Report{1: {Doubts: []uint64{3}}, 2: {Doubts: []uint64{3}}}, 3},
		{"half doubt", 5, map[uint64]Report{1: {Doubts: []uint64{3}}, 2: {Doubts: []uint64{3}}}, 0},
		{"who doubts itself", 2, map[uint64]Report{1: {Doubts: []uint64{1}}}, 0},
	} {
		s := newSeats(&self{cfg: Config{ID: 1}})
		if got := s.worst(members(c.n), c.reports); got != c.want {
			t.Errorf("%s: %d is shunned, want %d", c.name, got, c.want)
		}
	}
}

// At most half of the members are shunned at a time, however many complain.
func TestHalfAtMostAreShunned(t *testing.T) {
	c := guardedCluster(t, 5, 83)
	for _, s := range c.each() {
		s.seat.report.Complains = []uint64{s.id%5 + 1, (s.id+1)%5 + 1}
	}
	least := 5
	for range 20 {
		c.run(50 * ms)
		least = min(least, len(c.await().replica.seats.shunned))
		if n := len(c.await().replica.seats.shunned); n > 2 {
			t.Fatalf("%d of 5 are shunned", n)
		}
	}
	if least == 0 && len(c.await().replica.seats.shunned) == 0 {
		t.Error("nobody is shunned")
	}
}

// A seat's commands come from its server, and from nobody else.
func TestSeatsAreCommandedByTheirServers(t *testing.T) {
	c := guardedCluster(t, 3, 84)
	seat := c.servers[2].seat.id
	for sequence, op := range []registry.Op{registry.OpRenew, registry.OpClose, registry.OpTurn, registry.OpQuiet, registry.OpEnter, registry.OpOpen} {
		command := registry.Command{Op: op, Session: seat, Sequence: 900 + uint64(sequence), TTL: seatTTL, Guarding: &registry.Guarding{Server: 2, Epoch: c.view().Epoch}}
		c.want(c.do(command), registry.Invalid)
	}
	leader, request := c.await(), [16]byte{3: 3}
	leader.replica.Submit(c.now, 1, []registry.Command{{Op: registry.OpEnd, Session: seat, By: &registry.Origin{Request: request}}})
	c.want(c.answerTo(registry.SessionID(request), 0), registry.Invalid)
	leader.replica.SubmitSeat(c.now, 1, []registry.Command{{Op: registry.OpClose, Session: seat, Sequence: 950}}, Report{})
	c.run(300 * ms)
	if got, seated := c.seatOf(2); !seated || got != seat {
		t.Error("the seat has ended")
	}
}

// A server enters only if it and the members reach each other.
func TestSeatNeedsLanes(t *testing.T) {
	for _, how := range []string{"it does not reach", "it is not reached"} {
		c := guardedCluster(t, 3, 85)
		c.servers[3].seat.extra = []registry.Command{{Op: registry.OpClose}}
		c.until("the seat is closed", func() bool { _, seated := c.seatOf(3); return !seated })
		if how == "it is not reached" {
			c.servers[1].seat.report.Reaches = []uint64{2}
			c.run(2 * seatTTL / 12)
		}
		fresh := c.newSeat(c.servers[3], 1)
		if how == "it does not reach" {
			fresh.report.Reaches = []uint64{1}
		}
		c.run(1000 * ms)
		if _, seated := c.seatOf(3); seated {
			t.Errorf("%s: it has a seat", how)
		}
		if n := len(fresh.refusals); n == 0 || !strings.Contains(fresh.refusals[n-1].Result.Message, "reach each other") {
			t.Errorf("%s: the answers are %+v", how, fresh.refusals)
		}
		fresh.report.Reaches, c.servers[1].seat.report.Reaches = []uint64{1, 2, 3}, []uint64{1, 2, 3}
		c.until("it has a seat", func() bool { _, seated := c.seatOf(3); return seated })
	}
}

// A server enters only when it has the log. Otherwise all members would wait for it at the
// START (S2).
func TestSeatNeedsTheLog(t *testing.T) {
	c := guardedCluster(t, 3, 90)
	behind := c.servers[c.await().id%3+1]
	behind.seat.extra = []registry.Command{{Op: registry.OpClose}}
	c.until("the seat is closed", func() bool { _, seated := c.seatOf(behind.id); return !seated })
	behind.seat.silent, behind.hung = true, true
	c.want(c.do(open(1, 1, 60_000*ms)), registry.OK)
	for sequence := uint64(2); sequence < 150; sequence++ {
		c.want(c.do(acquire(1, sequence, fmt.Sprint("y", sequence))), registry.OK)
	}
	fresh := c.newSeat(behind, 1)
	c.run(1000 * ms)
	if _, seated := c.seatOf(behind.id); seated {
		t.Error("a server that lacks 148 entries has a seat")
	}
	if n := len(fresh.refusals); n == 0 || !strings.Contains(fresh.refusals[n-1].Result.Message, "has not caught up") {
		t.Errorf("the answers are %+v", fresh.refusals)
	}
	behind.hung = false
	c.until("it has a seat", func() bool { _, seated := c.seatOf(behind.id); return seated })
}

// A change of a guard that takes longer than its operator wanted is cancelled, also by
// the next leader.
func TestGuardChangeIsCancelled(t *testing.T) {
	c := guardedCluster(t, 3, 86)
	c.want(c.do(open(9, 1, 60_000*ms)), registry.OK)
	c.want(c.do(acquire(9, 2, "slow/x")), registry.OK)
	c.want(c.guard("slow/", registry.Guarding{Use: view.Use{Algorithm: "raymond"}, Wait: 2000 * ms}), registry.OK)
	began := c.now
	c.run(1000 * ms)
	c.crash(c.await())
	c.until("the change is cancelled", func() bool {
		g := c.view().Find("slow/")
		return g != nil && g.Change == 0
	})
	if took := c.now - began; took < 2500*ms || took > 5000*ms {
		t.Errorf("it took %d ms", took/ms)
	}
	c.want(c.do(registry.Command{Op: registry.OpAcquire, Session: id(9), Sequence: 3, Name: "slow/y", Try: true}), registry.OK)
}

// Epochs that servers ask for do not follow each other at once.
func TestTurnsAreRare(t *testing.T) {
	c := guardedCluster(t, 3, 87)
	turn := func(s *server, coordinator uint64) registry.Result {
		s.seat.extra = []registry.Command{{Op: registry.OpTurn, Guarding: &registry.Guarding{Epoch: c.view().Epoch, Coordinator: coordinator}}}
		c.until("it was sent", func() bool { return s.seat.extra == nil })
		sequence := s.seat.sequence
		c.until("it is answered", func() bool { _, told := s.seat.answers[sequence]; return told })
		return s.seat.answers[sequence]
	}
	c.want(turn(c.servers[1], 0), registry.OK)
	if again := c.want(turn(c.servers[2], 0), registry.Unavailable); again.Remaining < 50e9 {
		t.Errorf("it may ask again in %d ms", again.Remaining/ms)
	}
	c.want(turn(c.servers[2], 2), registry.OK)
	c.want(turn(c.servers[3], 3), registry.Unavailable)
	c.run(11_000 * ms)
	c.want(turn(c.servers[3], 3), registry.OK)
	if l := c.view(); l.Coordinator != 3 {
		t.Errorf("server %d coordinates", l.Coordinator)
	}
}

// A cluster below the level knows no guards, and no entry has any.
func TestGuardsNeedTheirLevel(t *testing.T) {
	c := newCluster(t, 3, 88)
	for _, s := range c.each() {
		s.newest = version.Guarded - 1
		c.newSeat(s, 0)
	}
	c.start()
	c.until("the level has risen", func() bool { return c.level() == version.Guarded-1 })
	got := c.want(c.guard("live/", registry.Guarding{Use: view.Use{Algorithm: "central"}}), registry.Invalid)
	if !strings.Contains(got.Message, "from level 3 on") {
		t.Errorf("the answer is %q", got.Message)
	}
	c.run(500 * ms)
	for _, s := range c.each() {
		if n := len(s.seat.refusals); n == 0 || s.seat.refusals[n-1].Result.Code != registry.Invalid {
			t.Errorf("seat of server %d: %+v", s.id, s.seat.refusals)
		}
	}
	c.same()
}

// The level comes down only when nothing is live.
func TestLevelStaysWhileNamesAreGuarded(t *testing.T) {
	c := guardedCluster(t, 3, 89)
	if err := c.upgrade(Lower, version.Guarded-1); err == nil || !strings.Contains(err.Error(), `the guard of the prefix "live/"`) {
		t.Fatalf("error %v", err)
	}
	c.want(c.guard("live/", registry.Guarding{Remove: true}), registry.OK)
	for _, s := range c.each() {
		s.seat.extra = []registry.Command{{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: c.view().Epoch, Change: c.view().Changes}}}
	}
	c.until("the guard is gone", func() bool { return len(c.view().Guards) == 0 })
	if err := c.upgrade(Lower, version.Guarded-1); err == nil || !strings.Contains(err.Error(), "the seat of server 1") {
		t.Fatalf("error %v", err)
	}
	for _, s := range c.each() {
		s.seat.silent = true
	}
	c.until("the seats have ended", func() bool { return len(c.view().Seats) == 0 })
	if err := c.upgrade(Lower, version.Guarded-1); err != nil {
		t.Fatal(err)
	}
	c.want(c.guard("live/", registry.Guarding{Use: view.Use{Algorithm: "central"}}), registry.Invalid)
}
