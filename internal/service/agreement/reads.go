package agreement

import (
	"encoding/binary"

	"go.etcd.io/raft/v3"
)

// Read means that a read may proceed once the state machine has applied Index:
// after the ticket was drawn, a majority has confirmed that this member still
// led.
type Read struct {
	Ticket uint64
	Index  uint64
}

// reads are the tickets under way.
type reads struct {
	// drawn counts the tickets of this Core. None is ever drawn twice, because
	// raft matches answers to reads by ticket alone.
	drawn uint64
	// open is the number of tickets of this term that are not completed yet.
	open int
	// early are the tickets drawn before an entry of this term was committed. With a
	// single voter, raft would answer them at once, with a commit index that after a
	// restart may be older than what was acknowledged.
	early []uint64
}

func (r *reads) forget() { r.open, r.early = 0, nil }

// ReadIndex starts a round of heartbeats and returns the ticket by which
// Ready.Reads will name it. A ticket is never named if this member stops
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

// readContext identifies a ticket uniquely: term, member, ticket.
func (c *Core) readContext(ticket uint64) []byte {
	b := binary.BigEndian.AppendUint64(nil, c.term)
	b = binary.BigEndian.AppendUint64(b, c.cfg.ID)
	return binary.BigEndian.AppendUint64(b, ticket)
}

// completed keeps the answers to tickets of the present term. Others are
// dropped, because their leader was deposed, and its successor decides about their
// requests, such as renewals.
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
