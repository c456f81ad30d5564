package agreement

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// Read says that a read may proceed once the state machine has applied Index:
// a majority has confirmed, after the ticket was drawn, that this member still
// led.
type Read struct {
	Ticket uint64
	Index  uint64
}

// reads are the tickets under way.
type reads struct {
	// drawn counts the tickets of this Core; none is ever drawn twice, for
	// raft matches answers to reads by ticket alone.
	drawn uint64
	// open is the number of tickets of this term not yet completed.
	open int
	// early are those drawn before an entry of this term was committed. Raft
	// would answer them at once when there is a single voter, with a commit
	// index that after a restart may be older than what was acknowledged.
	early []uint64
}

func (r *reads) forget() { r.open, r.early = 0, nil }

// ReadIndex starts a round of heartbeats and returns the ticket by which
// Ready.Reads will name it. A ticket is not named when this member stops
// leading before a majority has answered.
func (c *Core) ReadIndex() (ticket uint64, err error) {
	if c.role != Leader {
		return 0, ErrNotLeader
	}
	if c.reads.open >= c.cfg.MaxReads {
		return 0, ErrBusy
	}
	c.reads.drawn++
	c.reads.open++
	if c.committedInTerm() {
		c.node.ReadIndex(c.readContext(c.reads.drawn))
	} else {
		c.reads.early = append(c.reads.early, c.reads.drawn)
	}
	return c.reads.drawn, nil
}

func (c *Core) committedInTerm() bool {
	return c.role == Leader && c.node.BasicStatus().GetCommit() > c.electedAt
}

func (c *Core) readsReleasable() bool { return len(c.reads.early) > 0 && c.committedInTerm() }

func (c *Core) releaseReads() {
	if !c.readsReleasable() {
		return
	}
	for _, ticket := range c.reads.early {
		c.node.ReadIndex(c.readContext(ticket))
	}
	c.reads.early = nil
}

// readContext names a ticket unmistakably: term, member, ticket.
func (c *Core) readContext(ticket uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, c.term)
	b = binary.BigEndian.AppendUint64(b, c.cfg.ID)
	return binary.BigEndian.AppendUint64(b, ticket)
}

// completed keeps the answers to tickets of the present term. Others are
// dropped: their leader was deposed, and what it was asked for (a renewal,
// say) is its successor's to decide.
func (c *Core) completed(states []raft.ReadState) []Read {
	var done []Read
	for _, s := range states {
		term := binary.BigEndian.Uint64(s.RequestCtx)
		member := binary.BigEndian.Uint64(s.RequestCtx[8:])
		if c.role != Leader || term != c.term || member != c.cfg.ID {
			continue
		}
		c.reads.open--
		done = append(done, Read{Ticket: binary.BigEndian.Uint64(s.RequestCtx[16:]), Index: s.Index})
	}
	return done
}
