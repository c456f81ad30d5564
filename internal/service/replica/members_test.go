package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// change asks the leader, whoever that is, until the change is made or refused.
func (c *cluster) change(change Change) (uint64, error) {
	c.t.Helper()
	for range 2000 {
		s := c.await()
		id, done, err := s.replica.Change(c.now, change)
		if done || err != nil && !errors.Is(err, agreement.ErrNotLeader) {
			return id, err
		}
		c.run(5 * ms)
	}
	c.t.Fatalf("the change %+v is not made within 10 s", change)
	return 0, nil
}

func (c *cluster) make(change Change) uint64 {
	c.t.Helper()
	id, err := c.change(change)
	if err != nil {
		c.t.Fatalf("%+v: %v", change, err)
	}
	return id
}

// newcomer is what the n-th server to join says of itself when it asks.
func newcomer(n uint64) registry.Member {
	return registry.Member{UID: n * 100, PeerAddress: fmt.Sprint("peer-", n), ClientAddress: fmt.Sprint("client-", n)}
}

// join takes a server in and starts it, blank.
func (c *cluster) join(s registry.Member) *server {
	c.t.Helper()
	id := c.make(Change{Kind: Join, Server: s})
	if c.servers[id] == nil {
		c.servers[id] = &server{id: id, uid: s.UID}
	}
	c.restart(c.servers[id])
	return c.servers[id]
}

// until runs until something is so.
func (c *cluster) until(what string, yes func() bool) {
	c.t.Helper()
	for range 2000 {
		if yes() {
			return
		}
		c.run(10 * ms)
	}
	c.t.Fatalf("after 20 s still not: %s", what)
}

func (c *cluster) awaitVoters(want ...uint64) {
	c.t.Helper()
	c.until(fmt.Sprintf("the voters are %v and nobody else is a member", want), func() bool {
		s := c.leader()
		if s == nil {
			return false
		}
		status := s.replica.Status()
		return slices.Equal(status.Voters, want) && len(status.Learners) == 0
	})
}

func TestAServerJoins(t *testing.T) {
	c := started(t, 3, 21)
	c.want(c.do(open(1, 1, 60000*ms)), registry.OK)
	held := c.want(c.do(acquire(1, 2, "a")), registry.OK)
	joined := c.join(newcomer(4))
	if joined.id != 4 {
		t.Fatalf("the first to join three servers gets the id %d", joined.id)
	}
	c.awaitVoters(1, 2, 3, 4)
	if again := c.make(Change{Kind: Join, Server: newcomer(4)}); again != 4 {
		t.Errorf("asking again under the same UID gives the id %d", again)
	}
	c.crash(c.servers[1])
	c.crash(c.servers[2])
	c.run(1000 * ms)
	if s := c.leader(); s != nil {
		t.Fatalf("server %d leads two of four", s.id)
	}
	c.restart(c.servers[1])
	if again := c.want(c.do(acquire(1, 2, "a")), registry.OK); again.Fence != held.Fence {
		t.Errorf("the hold has the fence %d, it had %d", again.Fence, held.Fence)
	}
	c.restart(c.servers[2])
	c.run(1000 * ms)
	c.same()
}

// If a joining server, or its leader, crashes after the request, the server gets the same
// id when it asks again.
func TestAskingAgainGivesTheSameID(t *testing.T) {
	for seed := range uint64(20) {
		c := started(t, 3, 1000+seed)
		leader := c.await()
		for range 20 {
			if _, _, err := leader.replica.Change(c.now, Change{Kind: Join, Server: newcomer(4)}); err != nil && !errors.Is(err, agreement.ErrNotLeader) {
				t.Fatal(err)
			}
			c.run(int64(seed) * ms / 2)
		}
		c.crash(leader)
		first := c.make(Change{Kind: Join, Server: newcomer(4)})
		c.restart(leader)
		c.run(1000 * ms)
		if second := c.make(Change{Kind: Join, Server: newcomer(4)}); first != 4 || second != 4 {
			t.Fatalf("seed %d: the ids are %d and %d", seed, first, second)
		}
		if n := len(c.await().replica.Registry().Members()); n != 4 {
			t.Fatalf("seed %d: %d servers are on record", seed, n)
		}
	}
}

func TestALearnerStaysOneUntilItIsPromoted(t *testing.T) {
	c := started(t, 3, 22)
	s := newcomer(4)
	s.Standing = registry.Learner
	c.join(s)
	c.run(3000 * ms)
	if status := c.await().replica.Status(); !slices.Equal(status.Learners, []uint64{4}) || len(status.Voters) != 3 {
		t.Fatalf("voters %v, learners %v", status.Voters, status.Learners)
	}
	c.crash(c.servers[4])
	c.run(1000 * ms)
	c.refused(Change{Kind: Promote, ID: 4}, "server 4 is not up")
	c.restart(c.servers[4])
	c.run(1000 * ms)
	c.make(Change{Kind: Promote, ID: 4})
	c.awaitVoters(1, 2, 3, 4)
	c.make(Change{Kind: Promote, ID: 4}) // once more does no harm
	c.refused(Change{Kind: Promote, ID: 9}, "server 9 is not a member")
}

func (c *cluster) refused(change Change, want string) {
	c.t.Helper()
	if _, err := c.change(change); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		c.t.Errorf("%+v: %v, want one line that says %q", change, err, want)
	}
}

func TestAVoterIsMadeTheLeader(t *testing.T) {
	c := started(t, 3, 21)
	c.want(c.do(open(1, 1, 5000*ms)), registry.OK)
	for _, id := range []uint64{3, 1, 2, 2} { // whoever leads may be asked for, too
		c.make(Change{Kind: Lead, ID: id})
		if leads := c.await().id; leads != id {
			t.Fatalf("server %d leads, %d was to", leads, id)
		}
		c.want(c.do(renew(1, 10+id)), registry.OK)
	}
	s := newcomer(4)
	s.Standing = registry.Learner
	c.join(s)
	c.until("server 4 is a learner", func() bool { return slices.Equal(c.await().replica.Status().Learners, []uint64{4}) })
	c.refused(Change{Kind: Lead, ID: 4}, "server 4 has no vote")
	c.refused(Change{Kind: Lead, ID: 9}, "server 9 is not a member")
	c.crash(c.servers[3])
	c.run(1000 * ms)
	c.refused(Change{Kind: Lead, ID: 3}, "server 3 is not up")
	if leads := c.await().id; leads != 2 {
		t.Errorf("after refusals server %d leads", leads)
	}
}

func TestADeadMemberIsReplaced(t *testing.T) {
	c := started(t, 3, 23)
	c.want(c.do(open(1, 1, 600000*ms)), registry.OK)
	c.want(c.do(acquire(1, 2, "a")), registry.OK)
	dead := c.servers[c.await().id%3+1]
	c.crash(dead)
	c.make(Change{Kind: Remove, ID: dead.id})
	joined := c.join(newcomer(4))
	rest := []uint64{1, 2, 3, 4}
	c.awaitVoters(slices.DeleteFunc(rest, func(id uint64) bool { return id == dead.id })...)
	c.want(c.do(acquire(1, 3, "b")), registry.OK)
	c.run(500 * ms)
	c.same()

	// The dead one comes back: it is told, and disturbs nobody.
	term := c.await().replica.Term()
	c.restart(dead)
	c.until("the removed server stops", func() bool { return dead.removed })
	if now := c.await().replica.Term(); now != term {
		t.Errorf("the removed server moved the term from %d to %d", term, now)
	}
	// Its id is not used again, nor is its data directory.
	again := dead.said()
	again.PeerAddress = "elsewhere"
	c.refused(Change{Kind: Join, Server: again}, fmt.Sprintf("server %d, which was removed", dead.id))
	c.make(Change{Kind: Remove, ID: joined.id})
	c.until("the joined server is gone", func() bool { return joined.removed })
	if last := c.join(newcomer(5)); last.id != 5 {
		t.Errorf("after server 4 was removed the next gets the id %d", last.id)
	}
}

func TestTheLeaderIsRemoved(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n, " servers"), func(t *testing.T) {
			c := started(t, n, 24)
			c.want(c.do(open(1, 1, 5000*ms)), registry.OK)
			old := c.await()
			c.make(Change{Kind: Remove, ID: old.id})
			c.until("the old leader stops", func() bool { return old.removed })
			c.want(c.do(renew(1, 2)), registry.OK)
			c.make(Change{Kind: Remove, ID: old.id}) // once more does no harm
			if voters := c.await().replica.Status().Voters; len(voters) != n-1 || slices.Contains(voters, old.id) {
				t.Errorf("the voters are %v", voters)
			}
		})
	}
}

func TestWhatMayNotBeRemoved(t *testing.T) {
	c := started(t, 1, 25)
	c.refused(Change{Kind: Remove, ID: 1}, "the only voter")
	c.refused(Change{Kind: Remove, ID: 7}, "not a member")

	c = started(t, 3, 26)
	leader := c.await()
	dead, other := c.servers[leader.id%3+1], c.servers[(leader.id+1)%3+1]
	c.crash(dead)
	c.run(1000 * ms)
	c.refused(Change{Kind: Remove, ID: other.id}, "1 of 2 voters would be up")
	c.refused(Change{Kind: Remove, ID: leader.id}, "1 of 2 voters would be up")
	c.make(Change{Kind: Remove, ID: other.id, Force: true})
	c.restart(dead)
	c.awaitVoters(min(leader.id, dead.id), max(leader.id, dead.id))
}

// TestAnEmptiedMemberIsNoVoter: until it is readmitted, a member that lost its data
// neither replaces a server that is to be removed, nor gets the leadership.
func TestAnEmptiedMemberIsNoVoter(t *testing.T) {
	c := started(t, 3, 33)
	c.run(1000 * ms) // all are on record
	leader := c.await()
	other, emptied := c.servers[leader.id%3+1], c.servers[(leader.id+1)%3+1]
	c.crash(emptied)
	c.wipe(emptied)
	emptied.uid += 1000
	leader.replica.idle = -1_000_000 // it takes nobody back
	c.restart(emptied)
	c.until("the leader has met it", func() bool { return leader.replica.emptied(emptied.id) && leader.replica.live(emptied.id) })
	c.refused(Change{Kind: Remove, ID: other.id}, "1 of 2 voters would be up")
	c.crash(other)
	status := leader.replica.core.Status()
	c.until("the other one is missed", func() bool { return !leader.replica.live(other.id) })
	if best, _ := leader.replica.successor(&status); best != 0 {
		t.Errorf("server %d, which is empty, is to lead", best)
	}
	for _, m := range leader.replica.Members() {
		if m.Emptied != (m.ID == emptied.id) {
			t.Errorf("%+v", m)
		}
	}
	leader.replica.idle = 0
	c.restart(other)
	c.until("it is taken back", func() bool {
		return !leader.replica.emptied(emptied.id) && slices.Contains(c.await().replica.Status().Voters, emptied.id)
	})
}

func TestTwoChangesAtOnce(t *testing.T) {
	c := started(t, 3, 27)
	if id := c.make(Change{Kind: Join, Server: newcomer(4)}); id != 4 {
		t.Fatal(id)
	}
	var busy *ChangeError
	if _, err := c.change(Change{Kind: Join, Server: newcomer(5)}); !errors.As(err, &busy) || !busy.Busy {
		t.Errorf("a second server joins: %v", err)
	}
	c.refused(Change{Kind: Join, Server: newcomer(5)}, "server 4 is joining and has not started yet")
	c.refused(Change{Kind: Remove, ID: 2}, "server 4 is joining")
	// A reservation is no change, and one that does not come can be given up.
	if id := c.make(Change{Kind: Add, Server: newcomer(5)}); id != 5 {
		t.Errorf("the id %d is reserved", id)
	}
	if id := c.make(Change{Kind: Add, Server: newcomer(5)}); id != 5 {
		t.Errorf("reserving again gives %d", id)
	}
	c.make(Change{Kind: Remove, ID: 4})
	if id := c.make(Change{Kind: Join, Server: newcomer(5)}); id != 5 {
		t.Errorf("the server that was announced gets the id %d", id)
	}
	c.refused(Change{Kind: Remove, ID: 1}, "server 5 is joining")
}

// While a member is being removed, another may not be, whoever leads meanwhile.
func TestARemovalUnderWayIsNamed(t *testing.T) {
	c := started(t, 5, 28)
	leader := c.await()
	victim, other := c.servers[leader.id%5+1], c.servers[(leader.id+1)%5+1]
	leader.replica.changing, leader.replica.idle = false, -1000 // nothing follows the record
	for {
		if _, _, err := leader.replica.Change(c.now, Change{Kind: Remove, ID: victim.id}); err != nil {
			t.Fatal(err)
		}
		if m, _ := leader.replica.Registry().Member(victim.id); m.Standing == registry.Removed {
			break
		}
		c.run(5 * ms)
	}
	c.refused(Change{Kind: Remove, ID: other.id}, fmt.Sprintf("server %d is being removed", victim.id))
	c.crash(leader)
	c.make(Change{Kind: Remove, ID: victim.id})
	c.until("the removed server stops", func() bool { return victim.removed })
}

// A member that joined and lost its data comes back under its id.
func TestAnEmptiedJoinerComesBack(t *testing.T) {
	c := started(t, 3, 29)
	joined := c.join(newcomer(4))
	c.awaitVoters(1, 2, 3, 4)
	again := newcomer(4)
	again.UID = 401
	c.refused(Change{Kind: Join, Server: again}, "server 4 is a member at peer-4, and was up")
	c.crash(joined)
	c.wipe(joined)
	c.run(1000 * ms)
	if id := c.make(Change{Kind: Join, Server: again}); id != 4 || joined.uid != 401 {
		t.Fatalf("the emptied server 4 gets the id %d, UID %d", id, joined.uid)
	}
	c.restart(joined)
	c.until("the new UID is on record, and it votes", func() bool {
		r := c.await().replica
		m, _ := r.Registry().Member(4)
		return m.UID == 401 && slices.Contains(r.Status().Voters, uint64(4))
	})
	c.run(500 * ms)
	c.same()
}

func TestAddressesGoOnRecordAndChange(t *testing.T) {
	c := started(t, 3, 30)
	c.run(1000 * ms)
	for _, s := range c.each() {
		if m, _ := c.await().replica.Registry().Member(s.id); m != s.said() {
			t.Errorf("on record is %+v, said was %+v", m, s.said())
		}
	}
	moved := c.servers[2].said()
	moved.PeerAddress = "elsewhere"
	for _, s := range c.each() {
		s.replica.Met(moved, s.levels())
	}
	c.run(1000 * ms)
	if m, _ := c.servers[1].replica.Registry().Member(2); m.PeerAddress != "elsewhere" {
		t.Errorf("on record is %+v after server 2 moved", m)
	}
}

// A server that is recorded as removed is needed until the configuration changes too.
// Without it, the other one of two servers could not commit the change.
func TestAServerStaysUntilItsRemovalIsComplete(t *testing.T) {
	c := newCluster(t, 2, 31)
	c.cfg = Config{SnapshotBytes: 1}
	c.start()
	leader := c.await()
	victim := c.servers[leader.id%2+1]
	c.run(500 * ms)
	leader.replica.idle = -1000 // nothing follows the record
	if _, _, err := leader.replica.Change(c.now, Change{Kind: Remove, ID: victim.id}); err != nil {
		t.Fatal(err)
	}
	c.until("the removal is in the victim's snapshot", func() bool {
		at, err := registry.Decode(victim.durable.Snapshot.GetData())
		if err != nil {
			t.Fatal(err)
		}
		m, _ := at.Member(victim.id)
		return m.Standing == registry.Removed
	})
	c.crash(victim)
	c.restart(victim)
	c.run(100 * ms)
	if victim.removed {
		t.Fatal("it does not start again, though it is a member")
	}
	c.make(Change{Kind: Remove, ID: victim.id})
	c.until("the removed server stops", func() bool { return victim.removed })
	c.awaitVoters(leader.id)
}

// TestEmptiedFounderIsMetFirst: a founder that lost its data before it first connected to
// the leader does not keep its old role. It waits without a vote, and is readmitted.
func TestEmptiedFounderIsMetFirst(t *testing.T) {
	c := newCluster(t, 3, 32)
	for _, s := range c.each() {
		c.cfg.Founders = append(c.cfg.Founders, registry.Member{ID: s.id, UID: s.uid, PeerAddress: s.said().PeerAddress})
	}
	emptied := c.servers[3]
	emptied.uid, emptied.durable = 301, agreement.Disk{}
	c.start()
	c.until("the emptied founder is taken back", func() bool {
		m, _ := c.await().replica.Registry().Member(3)
		return m == emptied.said() && !emptied.replica.Blank() && slices.Contains(emptied.replica.Status().Voters, uint64(3))
	})
	c.run(500 * ms)
	c.same()
}

// TestEmptiedFounderIsMetWithoutTheRecord: servers that have lost their founding record
// do not record a founder that does not answer, because it may have lost its data. Once
// the record is known again, it is readmitted.
func TestEmptiedFounderIsMetWithoutTheRecord(t *testing.T) {
	c := newCluster(t, 3, 32)
	var founders []registry.Member
	for _, s := range c.each() {
		founders = append(founders, registry.Member{ID: s.id, UID: s.uid, PeerAddress: s.said().PeerAddress})
	}
	emptied := c.servers[3]
	emptied.uid, emptied.durable = 301, agreement.Disk{}
	c.start()
	c.until("the others are on record", func() bool {
		_, one := c.await().replica.Registry().Member(1)
		_, two := c.await().replica.Registry().Member(2)
		return one && two
	})
	c.run(500 * ms)
	if m, recorded := c.await().replica.Registry().Member(3); recorded {
		t.Fatalf("the emptied founder is on record as %+v", m)
	}
	for _, s := range c.each() {
		s.replica.Founded(founders)
	}
	c.until("the emptied founder is taken back", func() bool {
		m, _ := c.await().replica.Registry().Member(3)
		return m == emptied.said() && !emptied.replica.Blank() && slices.Contains(emptied.replica.Status().Voters, uint64(3))
	})
}
