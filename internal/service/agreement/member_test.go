package agreement

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func change(kind raftpb.ConfChangeType, id uint64) *raftpb.ConfChangeSingle {
	return &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: new(id)}
}

const (
	addVoter   = raftpb.ConfChangeAddNode
	addLearner = raftpb.ConfChangeAddLearnerNode
	remove     = raftpb.ConfChangeRemoveNode
)

func (c *cluster) change(m *member, changes ...*raftpb.ConfChangeSingle) {
	c.t.Helper()
	before := m.core.Status()
	if err := m.core.ProposeChange([]byte("why"), changes...); err != nil {
		c.t.Fatal(err)
	}
	c.run("the change", func() bool {
		s := m.core.Status()
		same := slices.Equal(s.Voters, before.Voters) && slices.Equal(s.Learners, before.Learners)
		return !same && len(s.Outgoing) == 0
	})
}

// A member that is removed learns of it before the leader forgets it, without waiting for a tick.
func TestRemovedMemberLearnsOfIt(t *testing.T) {
	c, leader := threeMembers(t)
	gone := c.other(leader)
	if err := leader.core.ProposeChange(nil, change(remove, gone.id)); err != nil {
		t.Fatal(err)
	}
	c.settle()
	if voters := gone.core.Status().Voters; slices.Contains(voters, gone.id) {
		t.Errorf("the removed member sees the voters %v", voters)
	}
}

// A member that crashes after a change, before any other entry, still knows the change: the
// others that it counted on before may be gone.
func TestChangeOutlivesACrash(t *testing.T) {
	c, leader := threeMembers(t)
	gone := c.other(leader)
	c.change(leader, change(remove, gone.id))
	delete(c.members, gone.id)
	c.settle()
	kept := c.other(leader)
	for _, m := range []*member{leader, kept} {
		c.crash(m.id)
		c.start(m.id)
		c.settle()
		if voters := m.core.Status().Voters; slices.Contains(voters, gone.id) {
			t.Errorf("after a crash member %d sees the voters %v", m.id, voters)
		}
	}
	c.elect()
}

// TestChange takes a cluster from 1 2 3 to 1 2 4 with 4 a learner first, and
// removes the leader at last.
func TestChange(t *testing.T) {
	c, leader := threeMembers(t)
	gone := c.other(leader)
	c.change(leader, change(remove, gone.id))
	delete(c.members, gone.id)

	c.snapshot(leader) // the joiner needs a snapshot that knows it
	joined := c.join(4)
	if !joined.core.Status().Blank {
		t.Error("a member without a disk is not blank")
	}
	c.change(leader, change(addLearner, 4))
	c.converge()
	if s := joined.core.Status(); s.Blank || !slices.Equal(s.Learners, []uint64{4}) {
		t.Errorf("the joiner sees %+v", s)
	}
	if c.counts["install"] != 1 {
		t.Errorf("the joiner installed %d snapshots, want 1", c.counts["install"])
	}
	c.change(leader, change(addVoter, 4))
	c.converge()
	if s := joined.core.Status(); !slices.Contains(s.Voters, uint64(4)) {
		t.Errorf("the promoted member sees %+v", s)
	}

	c.change(leader, change(remove, leader.id))
	if role := leader.core.Status().Role; role == Leader {
		t.Error("the removed leader still leads")
	}
	delete(c.members, leader.id)
	c.propose(c.elect(), "after the leader left")
	c.converge()
}

// TestChangeOfSeveral goes through a joint configuration and leaves it.
func TestChangeOfSeveral(t *testing.T) {
	c, leader := threeMembers(t)
	others := []*member{c.other(leader)}
	others = append(others, c.other(leader, others[0]))
	c.snapshot(leader)
	c.join(4)
	c.change(leader, change(addLearner, 4))
	c.converge()
	c.change(leader, change(addVoter, 4), change(remove, others[0].id))
	delete(c.members, others[0].id)
	c.converge()
	want := []uint64{leader.id, others[1].id, 4}
	slices.Sort(want)
	if got := leader.core.Status().Voters; !slices.Equal(got, want) {
		t.Errorf("voters are %v, want %v", got, want)
	}
}

func TestChangeIsRefused(t *testing.T) {
	c, leader := threeMembers(t)
	follower := c.other(leader)
	if err := follower.core.ProposeChange(nil, change(remove, 1)); !errors.Is(err, ErrNotLeader) {
		t.Errorf("change at a follower: %v, want ErrNotLeader", err)
	}
	all := []*raftpb.ConfChangeSingle{change(remove, 1), change(remove, 2), change(remove, 3)}
	if err := leader.core.ProposeChange(nil, all...); err == nil || !strings.Contains(err.Error(), "removed all voters") {
		t.Errorf("removing every voter: %v", err)
	}
	if err := leader.core.ProposeChange(nil, change(addVoter, 0)); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("adding member 0: %v", err)
	}
	if err := leader.core.ProposeChange(nil); err == nil {
		t.Error("a change of nothing was accepted")
	}
	if err := leader.core.ProposeChange(nil, change(addLearner, 4)); err != nil {
		t.Fatal(err)
	}
	if err := leader.core.ProposeChange(nil, change(addLearner, 5)); !errors.Is(err, ErrChangePending) {
		t.Errorf("a second change: %v, want ErrChangePending", err)
	}
	c.settle()
	if learners := leader.core.Status().Learners; !slices.Equal(learners, []uint64{4}) {
		t.Errorf("learners are %v, want [4]", learners)
	}
}

func TestDecodeChange(t *testing.T) {
	v1 := &raftpb.ConfChange{Type: addLearner.Enum(), NodeId: new(uint64(4)), Context: []byte("c")}
	kind, data, err := raftpb.MarshalConfChange(v1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeChange(&raftpb.Entry{Type: kind.Enum(), Data: data})
	if err != nil || raftpb.ConfChangesToString(got.GetChanges()) != "l4" || string(got.GetContext()) != "c" {
		t.Errorf("decoded %v, %v", got, err)
	}
	if _, err := DecodeChange(&raftpb.Entry{Data: []byte("x")}); err == nil {
		t.Error("a normal entry was decoded as a change")
	}
	if _, err := DecodeChange(&raftpb.Entry{Type: kind.Enum(), Data: []byte{0xff}}); err == nil {
		t.Error("garbage was decoded as a change")
	}
}

// TestFarBehind: a member that missed entries that are no longer in the log gets a
// snapshot.
func TestFarBehind(t *testing.T) {
	c, leader := threeMembers(t)
	behind := c.other(leader)
	c.crash(behind.id)
	for _, value := range []string{"a", "b", "c", "d"} {
		c.propose(leader, value)
	}
	c.snapshot(leader)
	c.propose(leader, "e")
	if first := leader.core.Status().First; first <= behind.disk.Snapshot.GetMetadata().GetIndex()+2 {
		t.Fatalf("the leader's log starts at %d, so the member is not far behind", first)
	}
	c.start(behind.id)
	c.converge()
	if c.counts["install"] != 1 {
		t.Errorf("%d snapshots installed, want 1", c.counts["install"])
	}
	if behind.disk.Snapshot.GetMetadata().GetIndex() < 5 {
		t.Errorf("the snapshot on disk is at %d", behind.disk.Snapshot.GetMetadata().GetIndex())
	}
}

// TestEmptiedMember: a voter that lost its disk does not vote, receives no entries, and
// reports why, until it has been removed and added again.
func TestEmptiedMember(t *testing.T) {
	c, leader := threeMembers(t)
	emptied := c.other(leader)
	lagging := c.other(leader, emptied)
	c.isolate(lagging.id, true)
	c.propose(leader, "acknowledged by the emptied member")
	c.snapshot(leader)
	c.crash(emptied.id)
	emptied.disk = Disk{}
	c.start(emptied.id)
	c.ticks(2)
	if c.counts["refused"] == 0 {
		t.Error("the emptied member did not notice that it had lost its log")
	}
	c.isolate(lagging.id, false)
	c.isolate(leader.id, true)
	c.ticks(100)
	if l := c.leader(); l != nil && l != leader {
		t.Fatalf("member %d was elected with the vote of a member that had forgotten its own", l.id)
	}
	c.isolate(leader.id, false)
	c.isolate(emptied.id, true)
	c.elect()
	c.propose(leader, "more")
	c.isolate(emptied.id, false)
	c.ticks(50)
	if !emptied.core.Status().Blank {
		t.Error("the emptied member took a snapshot as a voter")
	}
	c.change(c.elect(), change(remove, emptied.id))
	c.change(c.elect(), change(addLearner, emptied.id))
	c.converge()
	c.change(c.elect(), change(addVoter, emptied.id))
	c.converge()
	if s := emptied.core.Status(); s.Blank || len(s.Voters) != 3 {
		t.Errorf("the member came back as %+v", s)
	}
}

// A leader can step down in its term without a disk write. A single voter stays leader.
func TestStepDown(t *testing.T) {
	for _, n := range []int{1, 3} {
		ids := []uint64{1, 2, 3}[:n]
		c := newCluster(t, 5, testConfig(), ids...)
		leader := c.elect()
		before := leader.core.Status()
		leader.core.StepDown()
		after := leader.core.Status()
		if stays := n == 1; after.Term != before.Term || (after.Role == Leader) != stays {
			t.Errorf("of %d voters the leader of term %d is %v of term %d after StepDown", n, before.Term, after.Role, after.Term)
		}
	}
}
