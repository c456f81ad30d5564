package replica

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// hungLeader returns a cluster whose leader has a disk that hangs while session 1
// holds "x".
func hungLeader(t *testing.T, seed uint64) (*cluster, *server) {
	t.Helper()
	c := newCluster(t, 3, seed)
	c.start()
	c.want(c.do(open(1, 1, 3000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "x")), registry.OK)
	leader := c.await()
	leader.hung = true
	leader.replica.Submit(c.now, 1, []registry.Command{acquire(1, 3, "y")})
	return c, leader
}

// A leader whose disk hangs sends heartbeats and applies nothing. It hands over
// within three election timeouts, and does not lead again while its disk hangs.
// Holders keep their locks.
func TestLeaderWithAHungDiskHandsOver(t *testing.T) {
	for seed := range uint64(20) {
		c, old := hungLeader(t, seed)
		timeout := old.replica.electionTimeout()
		c.run(3 * timeout)
		if old.replica.Leading() {
			t.Fatalf("seed %d: the leader with the hung disk still leads after three election timeouts", seed)
		}
		fresh := c.await()
		term := fresh.replica.Term()
		for sequence := uint64(4); sequence < 24; sequence++ {
			c.want(c.do(renew(1, sequence)), registry.OK)
			c.run(250 * ms)
		}
		if now := c.await(); now != fresh || now.replica.Term() != term {
			t.Fatalf("seed %d: leader %d of term %d, then %d of term %d", seed, fresh.id, term, now.id, now.replica.Term())
		}
		old.hung = false
		c.run(10 * timeout)
		c.same()
	}
}

// The successor may not receive the message that it shall lead. Then the leader steps
// down, and the others elect one of themselves. The hung server must not be a candidate:
// raft asks for votes before the candidate has saved its own, and its log is the longest.
func TestLeaderWithAHungDiskStepsDown(t *testing.T) {
	for seed := range uint64(20) {
		c, old := hungLeader(t, seed)
		c.lost = raftpb.MsgTimeoutNow
		timeout := old.replica.electionTimeout()
		c.run(7 * timeout / 2)
		if old.replica.Leading() {
			t.Fatalf("seed %d: the leader with the hung disk still leads after three and a half election timeouts", seed)
		}
		c.run(6 * timeout)
		if fresh := c.leader(); fresh == nil || fresh == old {
			t.Fatalf("seed %d: none of the others leads six election timeouts later", seed)
		}
		c.want(c.do(renew(1, 4)), registry.OK)
	}
}

// If no disk works, no server can be elected. The leader stays, renews sessions, which
// needs no disk, and reports that nothing is applied.
func TestLeaderStaysWhenNoDiskWorks(t *testing.T) {
	for _, own := range []bool{true, false} {
		c, leader := hungLeader(t, 7)
		for _, s := range c.each() {
			s.hung = own || s != leader
		}
		for sequence := uint64(4); sequence < 34; sequence++ {
			leader.replica.Submit(c.now, 1, []registry.Command{renew(1, sequence)})
			c.want(c.answerTo(id(1), sequence), registry.OK)
			c.run(250 * ms)
		}
		if got := leader.replica.Waiting(); !leader.replica.Leading() || got < 7000*ms {
			t.Errorf("own disk hangs: %v: leading %v, waiting for %d ms", own, leader.replica.Leading(), got/ms)
		}
		for _, s := range c.each() {
			s.hung = false
		}
		c.run(1000 * ms)
		if got := leader.replica.Waiting(); got != 0 {
			t.Errorf("still waiting for %d ms", got/ms)
		}
		c.want(c.answerTo(id(1), 3), registry.OK)
	}
}

// Time in which a server stood still is not its disk's.
func TestPauseIsNotAStall(t *testing.T) {
	c, leader := hungLeader(t, 3)
	c.run(20 * ms)
	for _, s := range c.each() {
		s.paused = true
	}
	c.run(5000 * ms)
	for _, s := range c.each() {
		s.paused = false
	}
	c.run(300 * ms)
	leader.hung = false
	c.run(200 * ms)
	if c.await() != leader || leader.replica.Waiting() != 0 {
		t.Errorf("server %d leads after a pause of all, which server %d led before", c.await().id, leader.id)
	}
}
