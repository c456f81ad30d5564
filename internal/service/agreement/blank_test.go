package agreement

import "testing"

// TestBlankVoterMakesNoQuorum: a voter that lost its disk is connected to the leader,
// which has lost all others. The voter's answers must neither keep the leader nor confirm
// a read.
func TestBlankVoterMakesNoQuorum(t *testing.T) {
	c, old := threeMembers(t)
	emptied := c.other(old)
	leader := c.other(old, emptied)
	c.crash(emptied.id)
	// To a leader that never heard the emptied member it looks like one that lags.
	if err := old.core.TransferLeader(leader.id); err != nil {
		t.Fatal(err)
	}
	c.run("the other one leads", func() bool { return leader.core.Status().Role == Leader && leader.core.committedInTerm() })
	c.crash(old.id)
	c.join(emptied.id)
	if _, err := c.read(leader); err != nil {
		t.Fatal(err)
	}
	for range 2*c.cfg.ElectionTicks + 1 {
		c.settle()
		leader.core.Tick()
		c.members[emptied.id].core.Tick()
	}
	c.settle()
	if status := leader.core.Status(); status.Role == Leader {
		t.Errorf("a leader stays, with a blank voter as its majority: %+v", status)
	}
	if len(leader.done) > 0 {
		t.Errorf("reads %v were confirmed by a blank voter", leader.done)
	}
}
