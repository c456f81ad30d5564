package agreement

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"

	"go.etcd.io/raft/v3/raftpb"
)

// threeMembers returns a cluster of three and its leader.
func threeMembers(t *testing.T) (*cluster, *member) {
	cryptotest.SetGlobalRandom(t, 42)
	c := newCluster(t, 42, testConfig(), 1, 2, 3)
	return c, c.elect()
}

// other returns a member that is not among those named.
func (c *cluster) other(not ...*member) *member {
	for _, id := range c.ids() {
		if m := c.members[id]; !slices.Contains(not, m) {
			return m
		}
	}
	return nil
}

func (c *cluster) ticks(n int) {
	for range n {
		for _, id := range c.ids() {
			if m := c.members[id]; m.core != nil {
				m.core.Tick()
			}
		}
		c.settle()
	}
}

func TestFounders(t *testing.T) {
	if a, b := Bootstrap([]uint64{3, 1, 2}, []byte("x")), Bootstrap([]uint64{2, 3, 1}, []byte("x")); a.String() != b.String() {
		t.Errorf("founders start from different snapshots:\n%v\n%v", a, b)
	}
	c, leader := threeMembers(t)
	if status := leader.core.Status(); status.Term < 2 || !slices.Equal(status.Voters, []uint64{1, 2, 3}) || len(status.Peers) != 3 {
		t.Errorf("the first leader sees %+v", status)
	}
	c.propose(leader, "a")
	c.converge()
}

// TestPreVote: a member that was cut off does not depose the leader when it is
// back, though it has missed the leader for many election timeouts.
func TestPreVote(t *testing.T) {
	c, leader := threeMembers(t)
	term := leader.core.Status().Term
	away := c.other(leader)
	c.isolate(away.id, true)
	c.ticks(200)
	if status := away.core.Status(); status.Role != PreCandidate && status.Role != Follower || status.Term != term {
		t.Errorf("the isolated member is %v in term %d, want the term to stay %d", status.Role, status.Term, term)
	}
	c.isolate(away.id, false)
	c.ticks(50)
	if status := leader.core.Status(); status.Role != Leader || status.Term != term {
		t.Errorf("the leader became %v in term %d after the member came back, want leader in term %d", status.Role, status.Term, term)
	}
	c.converge()
}

// TestCheckQuorum: a leader that is cut off steps down within two election timeouts, and
// the others continue. Two, because it may have heard from a majority at the start of the
// first.
func TestCheckQuorum(t *testing.T) {
	c, leader := threeMembers(t)
	c.isolate(leader.id, true)
	c.ticks(2 * c.cfg.ElectionTicks)
	if role := leader.core.Status().Role; role == Leader {
		t.Errorf("the isolated leader is still %v", role)
	}
	c.run("another leader", func() bool { l := c.leader(); return l != nil && l != leader })
	c.propose(c.leader(), "without the old one")
	c.isolate(leader.id, false)
	c.converge()
}

func TestProposalsAreRefused(t *testing.T) {
	c, leader := threeMembers(t)
	follower := c.other(leader)
	if err := follower.core.Propose([]byte("x")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("proposal at a follower: %v, want ErrNotLeader", err)
	}
	if _, err := follower.core.ReadIndex(); !errors.Is(err, ErrNotLeader) {
		t.Errorf("read at a follower: %v, want ErrNotLeader", err)
	}
	if err := follower.core.TransferLeader(follower.id); !errors.Is(err, ErrNotLeader) {
		t.Errorf("transfer at a follower: %v, want ErrNotLeader", err)
	}
	if err := leader.core.Propose(nil); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty proposal: %v, want ErrEmpty", err)
	}
	c.settle()
	if len(c.agreed) == 0 || slices.Contains(leader.values, "x") {
		t.Error("a refused proposal was agreed")
	}
}

func TestBounds(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 42)
	cfg := testConfig()
	cfg.MaxUncommittedBytes, cfg.MaxReads = 1000, 5
	var lines []string
	cfg.Log = func(_ Level, text string) { lines = append(lines, text) }
	c := newCluster(t, 42, cfg, 1, 2, 3)
	leader := c.elect()
	lines = nil
	var err error
	accepted := 0
	for err == nil && accepted < 100 {
		if err = leader.core.Propose(make([]byte, 100)); err == nil {
			accepted++
		}
	}
	if !errors.Is(err, ErrBusy) || accepted != 10 {
		t.Errorf("%d proposals of 100 bytes accepted, then %v; want 10 and ErrBusy", accepted, err)
	}
	if len(lines) > 0 {
		t.Errorf("the refusal was logged: %q", lines)
	}
	c.settle()
	if err := leader.core.Propose([]byte("again")); err != nil {
		t.Errorf("after commitment: %v", err)
	}
	for err = nil; err == nil; {
		_, err = c.read(leader)
	}
	if !errors.Is(err, ErrBusy) || len(leader.reads) != 5 {
		t.Errorf("%d reads accepted, then %v; want 5 and ErrBusy", len(leader.reads), err)
	}
	c.settle()
	if _, err = c.read(leader); err != nil || len(leader.done) != 5 {
		t.Errorf("%d reads completed, then %v", len(leader.done), err)
	}
}

// TestReadIndexOfADeposedLeader: tickets drawn while the leader is cut off are never
// named, neither when it steps down nor when it leads again.
func TestReadIndexOfADeposedLeader(t *testing.T) {
	c, old := threeMembers(t)
	c.isolate(old.id, true)
	ticket, err := c.read(old)
	if err != nil {
		t.Fatal(err)
	}
	c.run("another leader", func() bool { l := c.leader(); return l != nil && l != old })
	c.propose(c.leader(), "by the new leader")
	c.isolate(old.id, false)
	c.converge()
	if err := c.leader().core.TransferLeader(old.id); err != nil {
		t.Fatal(err)
	}
	c.run("the old leader leads again", func() bool { return old.core.Status().Role == Leader })
	next, err := c.read(old)
	if err != nil || next == ticket {
		t.Fatalf("a new read got ticket %d (%v), the old one had %d", next, err, ticket)
	}
	c.run("the new read", func() bool { return len(old.done) > 0 })
	c.ticks(50)
	if len(old.done) != 1 || old.done[0].Ticket != next {
		t.Errorf("completed reads: %+v; want only ticket %d", old.done, next)
	}
}

// TestReadBeforeTheFirstCommit: a single voter that restarts knows a commit
// index that may be behind what it acknowledged, and must not read at it.
func TestReadBeforeTheFirstCommit(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 42)
	c := newCluster(t, 42, testConfig(), 1)
	m := c.elect()
	c.propose(m, "acknowledged")
	m.disk.HardState = &raftpb.HardState{Term: new(m.disk.HardState.GetTerm()), Vote: new(uint64(1)), Commit: new(uint64(1))}
	c.crash(1)
	c.start(1)
	m.core.Campaign()
	c.drain(m)
	for m.core.Status().Role != Leader {
		c.persist(m)
		c.drain(m)
	}
	if _, err := c.read(m); err != nil {
		t.Fatal(err)
	}
	c.drain(m)
	if len(m.done) > 0 {
		t.Fatalf("the read was answered at index %d before an entry of the term was committed", m.done[0].Index)
	}
	c.settle() // finish checks the index
	if len(m.done) != 1 {
		t.Errorf("%d reads completed, want 1", len(m.done))
	}
}

func TestTransfer(t *testing.T) {
	c, leader := threeMembers(t)
	if err := leader.core.TransferLeader(9); err == nil || !strings.Contains(err.Error(), "member 9 is not a voter") {
		t.Errorf("transfer to a stranger: %v", err)
	}
	to := c.other(leader)
	c.isolate(to.id, true)
	if err := leader.core.TransferLeader(to.id); err != nil {
		t.Fatal(err)
	}
	if err := leader.core.Propose([]byte("x")); !errors.Is(err, ErrTransferring) {
		t.Errorf("proposal during a transfer: %v, want ErrTransferring", err)
	}
	c.isolate(to.id, false)
	c.run("the transfer ends", func() bool { return leader.core.Status().Transferee == 0 })
	if err := c.elect().core.TransferLeader(to.id); err != nil && c.leader() != to {
		t.Fatal(err)
	}
	c.run("the other leads", func() bool { return c.leader() == to })
}

// TestSavesKeepTheirOrder: reporting a save before an earlier one would
// acknowledge what is not durable.
func TestSavesKeepTheirOrder(t *testing.T) {
	c, leader := threeMembers(t)
	for _, value := range []string{"a", "b"} {
		if err := leader.core.Propose([]byte(value)); err != nil {
			t.Fatal(err)
		}
		c.drain(leader)
	}
	if len(leader.saves) != 2 {
		t.Fatalf("%d saves under way, want 2: writing overlaps with replicating", len(leader.saves))
	}
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "out of order") {
			t.Errorf("the second save was taken first: %v", r)
		}
	}()
	leader.core.Saved(leader.saves[1])
}

// TestNothingIsPromisedBeforeTheSave: what a follower has not written, it has
// not acknowledged.
func TestNothingIsPromisedBeforeTheSave(t *testing.T) {
	c, leader := threeMembers(t)
	c.settle()
	if err := leader.core.Propose([]byte("a")); err != nil {
		t.Fatal(err)
	}
	c.drain(leader)
	for len(c.network) > 0 {
		c.deliver(0) // to the followers, whose disks stand still
	}
	for _, id := range c.ids() {
		m := c.members[id]
		if len(m.saves) != 1 || !m.saves[0].MustSync || m.saves[0].Empty() {
			t.Errorf("member %d has %d saves under way", id, len(m.saves))
		}
	}
	if commit, last := leader.core.Status().Commit, leader.core.Status().Last; commit > last {
		t.Errorf("entry %d is committed, and none of the members has written more than %d", commit, last)
	}
	c.settle()
	if !slices.Contains(leader.values, "a") {
		t.Error("the entry was not committed after all had written it")
	}
}

// Followers learn the commit index with the next entries. Without any, a message for it alone goes
// out at the next tick.
func TestCommitIndexTravelsWithEntries(t *testing.T) {
	c, leader := threeMembers(t)
	c.ticks(2)
	alone := c.counts["commit alone"]
	expect := func(when string, want ...string) {
		t.Helper()
		for _, id := range c.ids() {
			m, has := c.members[id], want
			if m == leader {
				has = []string{"a", "b"}[:len(leader.values)]
			}
			if !slices.Equal(m.values, has) {
				t.Errorf("%s: member %d has applied %q, want %q", when, id, m.values, has)
			}
		}
	}
	c.propose(leader, "a")
	c.settle()
	expect("after a")
	c.propose(leader, "b")
	c.settle()
	expect("after b", "a")
	if n := c.counts["commit alone"] - alone; n != 0 {
		t.Errorf("%d messages told the commit index alone while entries followed each other", n)
	}
	leader.core.Tick()
	c.settle()
	expect("after a tick", "a", "b")
	if n := c.counts["commit alone"] - alone; n != 2 {
		t.Errorf("%d messages told the commit index alone, want one for each follower", n)
	}
	c.ticks(5)
	if n := c.counts["commit alone"] - alone; n != 2 {
		t.Errorf("%d messages told a commit index that was known", n-2)
	}
}

// A leader that steps down has nothing left to tell.
func TestCommitIndexIsForgottenWithTheTerm(t *testing.T) {
	c, leader := threeMembers(t)
	c.propose(leader, "a")
	c.settle()
	leader.core.StepDown()
	alone := c.counts["commit alone"]
	leader.core.Tick()
	c.drain(leader)
	if n := c.counts["commit alone"] - alone; n != 0 {
		t.Errorf("a follower told the commit index %d times", n)
	}
	c.converge()
}
