package replica

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

func started(t *testing.T, n int, seed uint64) *cluster {
	c := newCluster(t, n, seed)
	c.start()
	c.await()
	return c
}

func TestGrantWaitsForARelease(t *testing.T) {
	c := started(t, 3, 1)
	c.want(c.do(open(1, 1, 10000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 10000*ms)), registry.OK)
	first := c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.want(c.do(acquire(2, 2, "a")), registry.Queued)
	c.want(c.do(release(1, 3, 2)), registry.OK)
	second := c.want(c.answerTo(id(2), 2), registry.OK)
	if second.Fence <= first.Fence {
		t.Fatalf("fence %d after %d", second.Fence, first.Fence)
	}
	c.run(500 * ms)
	c.same()
}

// A holder that is asked to leave learns it at once, and again from each renewal. It may
// stay for at most one TTL.
func TestRevokedHoldIsDroppedAfterATTL(t *testing.T) {
	c := started(t, 3, 21)
	c.want(c.do(open(1, 1, 2000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.want(c.do(acquire(2, 2, "a")), registry.Queued)
	asked := c.now
	c.want(c.do(registry.Command{Op: registry.OpRevoke, Session: id(2), Sequence: 3, Name: "a", Value: "stuck"}), registry.OK)
	if told := c.want(c.answerTo(id(1), 2), registry.Revoked); told.Message != "stuck" {
		t.Errorf("the holder is told %q", told.Message)
	}
	for sequence := uint64(3); c.now < asked+1800*ms; sequence++ {
		c.run(200 * ms)
		if got := c.want(c.do(renew(1, sequence)), registry.OK); !slices.Equal(got.Revoked, []uint64{2}) {
			t.Fatalf("a renewal tells of %v", got.Revoked)
		}
	}
	c.want(c.answerTo(id(2), 2), registry.OK)
	if took := c.now - asked; took < 1950*ms || took > 2300*ms {
		t.Fatalf("the hold was dropped after %d ms, the TTL is 2000 ms", took/ms)
	}
	if got := c.want(c.do(renew(1, 90)), registry.OK); got.Revoked != nil {
		t.Fatalf("a renewal still tells of %v", got.Revoked)
	}
	c.same()
}

// A candidate replaces a leader of lower priority after it has waited for its patience,
// and not before.
func TestFavouriteIsPatient(t *testing.T) {
	c := started(t, 3, 22)
	campaign := func(n byte, priority, patience int64) registry.Command {
		return registry.Command{Op: registry.OpAcquire, Session: id(n), Sequence: 2, Class: registry.Election, Name: "chief", Priority: priority, Patience: patience}
	}
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	c.want(c.do(campaign(1, 0, 0)), registry.OK)
	begun := c.now
	c.want(c.do(campaign(2, 5, 3000*ms)), registry.Queued)
	c.want(c.answerTo(id(1), 2), registry.Revoked)
	if took := c.now - begun; took < 3000*ms || took > 3300*ms {
		t.Fatalf("the leader was asked to leave after %d ms, not 3000", took/ms)
	}
	c.want(c.do(release(1, 3, 2)), registry.OK)
	c.want(c.answerTo(id(2), 2), registry.OK)
}

// The wall clocks of servers have no effect. A leader whose clock is a year ahead or
// behind does not change the patience of candidates, under itself or under later leaders.
func TestWallClockDecidesNoElection(t *testing.T) {
	const year = 365 * 24 * 3600 * 1000 * ms
	for name, skew := range map[string]int64{"ahead": year, "behind": -year} {
		t.Run(name, func(t *testing.T) {
			c := started(t, 3, 24)
			campaign := func(n byte, name string, priority, patience int64) registry.Command {
				return registry.Command{Op: registry.OpAcquire, Session: id(n), Sequence: uint64(2 + len(name)), Class: registry.Election, Name: name, Priority: priority, Patience: patience}
			}
			first := c.await()
			first.wall = skew
			c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
			c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
			c.want(c.do(campaign(1, "a", 0, 0)), registry.OK)
			c.want(c.do(campaign(1, "bb", 0, 0)), registry.OK)
			begun := c.now
			c.want(c.do(campaign(2, "a", 5, 3000*ms)), registry.Queued)
			c.run(100 * ms)
			first.wall = 0 // somebody sets it right
			c.want(c.answerTo(id(1), 3), registry.Revoked)
			if took := c.now - begun; took < 3000*ms || took > 3300*ms {
				t.Fatalf("the leader was asked to leave after %d ms, not 3000", took/ms)
			}

			first.wall = skew
			begun = c.now
			c.want(c.do(campaign(2, "bb", 5, 3000*ms)), registry.Queued)
			c.crash(first)
			for !slices.Contains(c.await().replica.Registry().Asked(id(1)), 4) && c.now < begun+20000*ms {
				c.run(10 * ms)
			}
			if took := c.now - begun; took < 3000*ms || took > 6000*ms {
				t.Fatalf("under the next leader it was asked to leave after %d ms, not 3000", took/ms)
			}
		})
	}
}

func TestFollowerRefuses(t *testing.T) {
	c := started(t, 3, 2)
	leader := c.await()
	for _, s := range c.each() {
		if s == leader {
			continue
		}
		s.replica.Submit(c.now, 1, []registry.Command{open(1, 1, 10000*ms)})
		c.want(c.answerTo(id(1), 1), registry.NotLeader)
	}
}

func TestSilentSessionExpiresAfterItsTTL(t *testing.T) {
	c := started(t, 3, 3)
	c.want(c.do(open(1, 1, 2000*ms)), registry.OK)
	c.want(c.do(open(2, 1, 60000*ms)), registry.OK)
	opened := c.now
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.want(c.do(acquire(2, 2, "a")), registry.Queued)
	c.want(c.answerTo(id(2), 2), registry.OK)
	if took := c.now - opened; took < 1950*ms || took > 2200*ms {
		t.Fatalf("the hold passed on after %d ms, the TTL is 2000 ms", took/ms)
	}
}

func TestRenewedSessionLives(t *testing.T) {
	c := started(t, 3, 4)
	c.want(c.do(open(1, 1, 1000*ms)), registry.OK)
	for sequence := uint64(2); sequence < 42; sequence++ {
		c.run(250 * ms)
		got := c.want(c.do(renew(1, sequence)), registry.OK)
		if got.Remaining != 1000*ms {
			t.Fatalf("renewed for %d ns", got.Remaining)
		}
	}
	c.run(1100 * ms)
	c.want(c.do(renew(1, 50)), registry.SessionGone)
}

// TestLateRenewalGoesThroughTheLog renews a session that is on record as
// silent: the next leader must know of it.
func TestLateRenewalGoesThroughTheLog(t *testing.T) {
	c := started(t, 3, 5)
	c.want(c.do(open(1, 1, 2000*ms)), registry.OK)
	c.run(1500 * ms)
	leader := c.await()
	if s, _ := leader.replica.Registry().Session(id(1)); !s.Silent {
		t.Fatal("a session silent for 3/4 of its TTL is not on record")
	}
	c.want(c.do(renew(1, 2)), registry.OK)
	if s, _ := leader.replica.Registry().Session(id(1)); s.Silent {
		t.Fatal("a renewed session is still on record as silent")
	}
	renewed := c.now
	c.crash(leader)
	c.await()
	c.run(renewed + 1900*ms - c.now)
	c.want(c.do(renew(1, 3)), registry.OK)
}

// TestCutOffLeaderPromisesNothing renews at a leader that no longer is one.
func TestCutOffLeaderPromisesNothing(t *testing.T) {
	c := started(t, 3, 6)
	c.want(c.do(open(1, 1, 5000*ms)), registry.OK)
	old := c.await()
	old.cut = true
	old.replica.Submit(c.now, 1, []registry.Command{renew(1, 2)})
	c.run(1000 * ms)
	for _, r := range c.replies {
		if r.Session == id(1) && r.Sequence == 2 {
			t.Fatalf("answered with code %d by a leader without a quorum", r.Result.Code)
		}
	}
	if old.replica.Leading() {
		t.Fatal("a leader without a quorum still leads after a second")
	}
}

// TestDeadSessionOutlivesNoSeriesOfLeaders kills every leader well before a
// TTL has passed; the dead session must end all the same.
func TestDeadSessionOutlivesNoSeriesOfLeaders(t *testing.T) {
	c := started(t, 3, 7)
	const ttl = 4000 * ms
	c.want(c.do(open(1, 1, ttl)), registry.OK)
	opened := c.now
	for c.ended[id(1)] == 0 {
		leader := c.await()
		c.run(1500 * ms)
		if c.now-opened > 6*ttl {
			t.Fatalf("a dead session is alive after %d ms and many leaders, its TTL is %d ms", (c.now-opened)/ms, ttl/ms)
		}
		c.crash(leader)
		c.run(100 * ms)
		c.restart(leader)
	}
	if lived := c.ended[id(1)] - opened; lived < ttl {
		t.Fatalf("it ended after %d ms, before its TTL", lived/ms)
	}
}

// TestPausedClusterForgives stops all servers for longer than every TTL. No session ends,
// because the servers were silent and not the clients.
func TestPausedClusterForgives(t *testing.T) {
	c := started(t, 3, 8)
	c.want(c.do(open(1, 1, 2000*ms)), registry.OK)
	for _, s := range c.each() {
		s.paused = true
	}
	c.run(30000 * ms)
	for _, s := range c.each() {
		s.paused = false
	}
	c.run(100 * ms)
	c.want(c.do(renew(1, 2)), registry.OK)
}

func TestEmptiedMemberComesBack(t *testing.T) {
	c := started(t, 3, 9)
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	c.run(2000 * ms) // the members are put on record
	for _, victim := range c.each() {
		c.crash(victim)
		c.wipe(victim)
		c.await()
		c.restart(victim)
		c.run(5000 * ms)
		status := c.await().replica.Status()
		if len(status.Voters) != 3 || len(status.Learners) != 0 {
			t.Fatalf("after server %d lost its data: voters %v, learners %v", victim.id, status.Voters, status.Learners)
		}
		c.same()
	}
}

// TestEmptiedMemberHasNoVote lets a member that acknowledged an entry lose it,
// while the only other one that has it is down: the third must not win.
func TestEmptiedMemberHasNoVote(t *testing.T) {
	c := started(t, 3, 10)
	c.run(2000 * ms)
	leader := c.await()
	var witness, lagging *server
	for _, s := range c.each() {
		switch {
		case s == leader:
		case lagging == nil:
			lagging = s
		default:
			witness = s
		}
	}
	lagging.cut = true
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	c.crash(leader)
	c.crash(witness)
	c.wipe(witness)
	c.restart(witness)
	lagging.cut = false
	c.run(10000 * ms)
	if got := c.leader(); got != nil {
		t.Fatalf("server %d leads without the entry that was acknowledged", got.id)
	}
	c.restart(leader)
	c.want(c.do(renew(1, 2)), registry.OK)
}

func TestFarBehindMemberCatchesUpBySnapshot(t *testing.T) {
	c := newCluster(t, 3, 11)
	c.cfg = Config{SnapshotBytes: 2000, TailEntries: 5}
	c.start()
	c.want(c.do(open(1, 1, 600000*ms)), registry.OK)
	leader := c.await()
	lagging := c.servers[leader.id%3+1]
	c.crash(lagging)
	for sequence := uint64(2); sequence < 300; sequence += 2 {
		c.want(c.do(acquire(1, sequence, fmt.Sprint("lock ", sequence))), registry.OK)
		c.want(c.do(registry.Command{Op: registry.OpRelease, Session: id(1), Sequence: sequence + 1, Low: sequence + 1, Hold: sequence}), registry.OK)
	}
	if first := c.await().replica.Status().First; first < 100 {
		t.Fatalf("the log begins at %d: it was never shortened", first)
	}
	c.restart(lagging)
	c.run(3000 * ms)
	c.same()
}

func TestSnapshotsAreNotMadeAtTheSameTime(t *testing.T) {
	c := newCluster(t, 3, 11)
	c.cfg = Config{SnapshotBytes: 8000, Stagger: true}
	c.start()
	c.want(c.do(open(1, 1, 600000*ms)), registry.OK)
	for sequence := uint64(2); sequence < 1000; sequence++ {
		c.want(c.do(acquire(1, sequence, fmt.Sprint("lock ", sequence))), registry.OK)
	}
	maker := make(map[uint64]uint64)
	for _, s := range c.each() {
		if len(s.made) < 3 {
			t.Errorf("server %d made snapshots for the entries %v", s.id, s.made)
		}
		for _, index := range s.made {
			for near := index - 10; near <= index+10; near++ {
				if other := maker[near]; other != 0 {
					t.Errorf("servers %d and %d made snapshots for the entries %d and %d", other, s.id, near, index)
				}
			}
		}
		for _, index := range s.made {
			maker[index] = s.id
		}
	}
}

// TestAllCrashAtOnce restarts everything from the disks alone.
func TestAllCrashAtOnce(t *testing.T) {
	c := started(t, 3, 12)
	c.want(c.do(open(1, 1, 10000*ms)), registry.OK)
	held := c.want(c.do(acquire(1, 2, "a")), registry.OK)
	for _, s := range c.each() {
		c.crash(s)
	}
	c.start()
	again := c.want(c.do(acquire(1, 2, "a")), registry.OK)
	if again.Fence != held.Fence {
		t.Fatalf("after the restart the hold has the fence %d, it had %d", again.Fence, held.Fence)
	}
	c.want(c.do(renew(1, 3)), registry.OK)
	c.want(c.do(release(1, 4, 2)), registry.OK)
	if next := c.want(c.do(acquire(1, 5, "b")), registry.OK); next.Fence <= held.Fence {
		t.Fatalf("fence %d after %d", next.Fence, held.Fence)
	}
}

func TestFullQueueSaysSo(t *testing.T) {
	c := newCluster(t, 3, 13)
	c.cfg = Config{MaxPending: 4, MaxInflight: 1}
	c.start()
	leader := c.await()
	var many []registry.Command
	for sequence := uint64(1); sequence <= 10; sequence++ {
		many = append(many, open(1, sequence, 10000*ms))
	}
	leader.replica.Submit(c.now, 1, many)
	c.run(500 * ms)
	count := make(map[registry.Code]int)
	for _, r := range c.replies {
		count[r.Result.Code]++
	}
	if count[registry.OK] != 4 || count[registry.Exhausted] != 6 {
		t.Fatalf("codes %v, want 4 carried out and 6 refused", count)
	}
}

func TestResignHandsOver(t *testing.T) {
	c := started(t, 3, 14)
	old := c.await()
	old.replica.Resign()
	c.run(200 * ms)
	if now := c.leader(); now == nil || now == old {
		t.Fatal("nobody else leads 200 ms after the leader resigned")
	}
}

func TestReadIsVouchedFor(t *testing.T) {
	c := started(t, 3, 15)
	leader := c.await()
	follower := c.servers[leader.id%3+1]
	leader.replica.Read(7)
	follower.replica.Read(8)
	c.run(100 * ms)
	leader.cut = true
	leader.replica.Read(9)
	c.run(1000 * ms)
	want := []Read{{ID: 7, OK: true}, {ID: 9}}
	if !slices.Equal(leader.reads, want) {
		t.Errorf("the leader, cut off after the first read, answered %v, want %v", leader.reads, want)
	}
	if want := []Read{{ID: 8}}; !slices.Equal(follower.reads, want) {
		t.Errorf("a follower answered %v, want %v", follower.reads, want)
	}
}

func TestOneSeedOneHistory(t *testing.T) {
	history := func(seed uint64) [32]byte {
		c := newCluster(t, 3, seed)
		c.loss = 0.05
		c.start()
		c.want(c.do(open(1, 1, 600000*ms)), registry.OK)
		for sequence := uint64(2); sequence < 40; sequence++ {
			leader := c.await()
			leader.replica.Submit(c.now, 1, []registry.Command{acquire(1, sequence, fmt.Sprint(sequence))})
			c.run(40 * ms)
			if sequence%10 == 0 {
				c.crash(leader)
				c.run(500 * ms)
				c.restart(leader)
			}
		}
		h := sha256.New()
		for _, r := range c.replies {
			fmt.Fprintln(h, r.server, r.at, r.Session, r.Sequence, r.Result.Code, r.Result.Fence)
		}
		for _, s := range c.each() {
			h.Write(s.replica.Registry().Freeze().Encode())
		}
		return [32]byte(h.Sum(nil))
	}
	if first, second := history(99), history(99); first != second {
		t.Fatal("one seed, two histories")
	}
	if history(99) == history(100) {
		t.Fatal("two seeds, one history")
	}
}

// TestTwoLeadersOfOneTermStopAServer shows a leader that another server leads in the same
// term, as after a disk was restored to an older state.
func TestTwoLeadersOfOneTermStopAServer(t *testing.T) {
	c := started(t, 3, 16)
	r := c.await().replica
	r.follow(agreement.Ready{Role: agreement.Follower, Term: r.term, Leader: 0})
	if r.out.Err != nil {
		t.Fatalf("a leader that steps down stops: %v", r.out.Err)
	}
	other := r.cfg.ID%3 + 1
	r.follow(agreement.Ready{Role: agreement.Follower, Term: r.term, Leader: other})
	if r.out.Err == nil {
		t.Fatal("two leaders in one term go unnoticed")
	}
	r.out.Err = nil
	r.follow(agreement.Ready{Role: agreement.Follower, Term: r.term + 1, Leader: other})
	if r.out.Err != nil {
		t.Fatalf("another leader in another term: %v", r.out.Err)
	}
}
