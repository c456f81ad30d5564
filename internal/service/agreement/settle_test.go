package agreement

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// When a leader says that a change of the members is settled, all members crash at once, the
// removed one is taken away, and fewer than half of the voters never return. The others must elect
// a leader, whatever was under way.
func TestSettledMembersAreEnough(t *testing.T) {
	unlike := 0
	for seed := range uint64(150) {
		for _, kind := range []raftpb.ConfChangeType{remove, addVoter} {
			t.Run(fmt.Sprint(kind, seed), func(t *testing.T) { unlike += settledMembersAreEnough(t, seed, kind) })
		}
	}
	if unlike == 0 {
		t.Error("no member had to learn of the change after the crash")
	}
}

// settledMembersAreEnough returns the number of members that knew only the former members.
func settledMembersAreEnough(t *testing.T, seed uint64, kind raftpb.ConfChangeType) (unlike int) {
	rng := rand.New(rand.NewPCG(seed, 38))
	ids := []uint64{1, 2, 3, 4, 5}[:3+rng.IntN(3)]
	c := newCluster(t, seed, testConfig(), ids...)
	leader := c.elect()
	changed := c.other(leader).id
	if kind == addVoter {
		c.change(leader, change(remove, changed))
		c.settle()
		c.snapshot(leader)
		c.join(changed)
		c.change(leader, change(addLearner, changed))
		c.converge()
	}
	if err := leader.core.ProposeChange(nil, change(kind, changed)); err != nil {
		t.Fatal(err)
	}
	made := func() bool {
		s := leader.core.Status()
		return s.Settled && slices.Contains(s.Voters, changed) == (kind == addVoter)
	}
	var slow *member // its disk stands still
	if len(ids) > 3 {
		slow = c.other(leader, c.members[changed])
	}
	c.drain(leader)
	for steps := 0; !made(); steps++ {
		switch m := c.members[ids[rng.IntN(len(ids))]]; {
		case steps == 10_000:
			t.Fatal("the change is never settled")
		case rng.IntN(8) == 0 && leader.core.Propose([]byte("more")) == nil:
			c.drain(leader)
		case rng.IntN(40) == 0:
			m.core.Tick()
			c.drain(m)
		case rng.IntN(2) == 0 && len(c.network) > 0:
			c.deliver(rng.IntN(len(c.network)))
		case len(m.saves) > 0 && m != slow:
			c.persist(m)
			c.drain(m)
		}
		if leader.core.Status().Role != Leader {
			return 0
		}
	}
	voters := leader.core.Status().Voters
	rng.Shuffle(len(voters), func(i, j int) { voters[i], voters[j] = voters[j], voters[i] })
	lost := voters[:(len(voters)-1)/2]
	for _, id := range c.ids() {
		c.crash(id)
	}
	c.network = nil
	for _, id := range c.ids() {
		if slices.Contains(lost, id) || !slices.Contains(voters, id) {
			delete(c.members, id)
			continue
		}
		c.start(id)
		if slices.Contains(c.members[id].core.Status().Voters, changed) == (kind == remove) {
			unlike++
		}
	}
	c.elect()
	return unlike
}
