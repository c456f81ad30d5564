package agreement

import (
	"math"

	"go.etcd.io/raft/v3/raftpb"
)

// settlement is what a leader knows about the durability of the present members.
//
// Raft stores a change of the members with a majority, but not that the change is committed: after
// a crash a server would return to the former members, and perhaps need one that is gone. So a
// leader that has applied a change appends one more entry. Each message with that entry, also of a
// later leader, has a commit index not below the change, and a server stores the index no later
// than the entry. When the entry is committed, a majority of the voters has stored both. Any majority
// of the voters then has a server that knows the change, and one such server has a log that is
// new enough to lead.
type settlement struct {
	done bool
	// after is the last entry that may have been appended before the change was applied. When a
	// later one is committed, the members are settled.
	after uint64
	// fresh means that a change was just applied, and the next Ready finds after. Owed means that
	// a later entry still has to be appended.
	fresh, owed bool
}

// unsettle notes that this leader has applied a change. What was committed when it was elected is
// settled by its first entry.
func (c *Core) unsettle(change uint64) {
	if c.role == Leader && change > c.electedAt {
		c.settlement = settlement{after: math.MaxUint64, fresh: true}
	}
}

// settle is called by each Ready, with the entries that it hands out as committed.
func (c *Core) settle(committed []*raftpb.Entry) {
	if c.role != Leader || c.settlement.done {
		return
	}
	if n := len(committed); n > 0 && committed[n-1].GetTerm() == c.term && committed[n-1].GetIndex() > c.settlement.after {
		c.settlement.done = true
	}
	if c.settlement.fresh {
		c.settlement = settlement{after: c.lastAppended(), owed: true}
		c.appendOwed()
	}
}

// appendOwed appends an empty entry if one is owed. Raft refuses it during a transfer of
// leadership; the next tick tries again.
func (c *Core) appendOwed() {
	if c.settlement.owed && c.propose(new(raftpb.Entry)) == nil {
		c.settlement.owed = false
	}
}

// lastAppended returns the last entry of a leader's log, which need not be durable. All entries
// have been handed out.
func (c *Core) lastAppended() uint64 {
	for i := len(c.saving) - 1; i >= 0; i-- {
		if n := len(c.saving[i].Entries); n > 0 {
			return c.saving[i].Entries[n-1].GetIndex()
		}
	}
	return c.log.last()
}
