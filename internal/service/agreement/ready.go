package agreement

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Ready is what the caller of a Core has to do. See the package comment for
// each field.
type Ready struct {
	Send      []*raftpb.Message // to peers, at once
	Save      *Save             // to the disk, nil for none
	Committed []*raftpb.Entry   // to the state machine
	Reads     []Read            // tickets that may proceed

	// WantSnapshot asks for CreateSnapshot now: a peer needs a snapshot, and
	// the newest one does not have the present configuration.
	WantSnapshot bool

	Role   Role
	Leader uint64 // 0 when none is known
	Term   uint64
}

// Save is what one Ready has to write, with the promises that may be
// made once it is durable.
type Save struct {
	HardState *raftpb.HardState // nil when unchanged
	Snapshot  *raftpb.Snapshot  // nil for none; written before Entries
	Entries   []*raftpb.Entry
	// MustSync is false if a crash may lose this save, because it changes only
	// the commit index. Saved may then be called as soon as it is written and
	// every earlier save is durable. If it is true, all earlier saves must be durable too.
	MustSync bool

	responses []*raftpb.Message
}

// Empty reports whether there is nothing to write. Saved must be called all the same,
// in its turn.
func (s *Save) Empty() bool {
	return s.HardState == nil && s.Snapshot == nil && len(s.Entries) == 0
}

// HasReady reports whether Ready has something to do.
func (c *Core) HasReady() bool {
	return c.node.HasReady() || c.log.wanted || c.readsReleasable() || c.tell || c.settlement.fresh
}

// Ready returns what has to be done since the last call. The caller must do all of it.
func (c *Core) Ready() Ready {
	c.releaseReads()
	raw := c.node.Ready()
	status := c.node.BasicStatus()
	rd := Ready{
		Committed:    raw.CommittedEntries,
		Reads:        c.completed(raw.ReadStates),
		WantSnapshot: c.log.wanted,
		Role:         roleOf(status.RaftState),
		Leader:       status.Lead,
		Term:         status.GetTerm(),
	}
	c.log.wanted = false
	c.applying = append(c.applying, raw.CommittedEntries...)
	for _, m := range raw.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			rd.Save = c.newSave(raw, m)
		case raft.LocalApplyThread: // its entries are raw.CommittedEntries
		default:
			c.markLearner(m)
			rd.Send = c.send(rd.Send, m)
		}
	}
	if slices.ContainsFunc(raw.CommittedEntries, changesMembers) {
		c.tell = true // a member that is removed must learn of it while it can still be reached
	}
	c.settle(raw.CommittedEntries)
	if c.tell {
		rd.Send = append(rd.Send, c.commits...)
		c.commits, c.tell = nil, false
	}
	return rd
}

// send adds a message to those to send. If it only tells the commit index, it waits until the
// next tick, and is dropped if entries for the same peer follow before: they tell it too.
func (c *Core) send(messages []*raftpb.Message, m *raftpb.Message) []*raftpb.Message {
	if m.GetType() != raftpb.MsgApp {
		return append(messages, m)
	}
	c.commits = slices.DeleteFunc(c.commits, func(older *raftpb.Message) bool { return older.GetTo() == m.GetTo() })
	if len(m.GetEntries()) > 0 {
		return append(messages, m)
	}
	c.commits = append(c.commits, m)
	return messages
}

func changesMembers(e *raftpb.Entry) bool { return e.GetType() != raftpb.EntryNormal }

func (c *Core) newSave(raw raft.Ready, m *raftpb.Message) *Save {
	s := &Save{Entries: m.GetEntries(), MustSync: raw.MustSync, responses: m.GetResponses()}
	if !raft.IsEmptyHardState(raw.HardState) {
		s.HardState = raw.HardState
	}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		s.Snapshot = m.GetSnapshot()
		s.MustSync = true
	}
	c.saving = append(c.saving, s)
	return s
}

// Saved reports that a save, and every save before it, is durable. It returns the
// messages to peers that had to wait for this. It panics if saves are not reported in the
// order in which they were handed out, because that would acknowledge entries that a
// crash can still lose.
func (c *Core) Saved(save *Save) (send []*raftpb.Message) {
	if len(c.saving) == 0 || c.saving[0] != save {
		panic(fmt.Sprintf("agreement: saves reported out of order; %d are outstanding", len(c.saving)))
	}
	c.saving[0] = nil
	c.saving = c.saving[1:]
	c.remember(save)
	for _, m := range save.responses {
		if m.GetTo() != c.cfg.ID {
			send = append(send, m)
			continue
		}
		// The only error is that this member was removed meanwhile, so that its own
		// acknowledgement no longer counts.
		_ = c.node.Step(m)
	}
	if save.Snapshot != nil {
		// The entries that were being applied are part of the snapshot. Raft still counts
		// them against its bound until they are acknowledged.
		c.acknowledge(c.applying)
		c.applying = nil
	}
	c.observe()
	return send
}

// remember moves a save from raft's unstable log to the in-memory log.
func (c *Core) remember(save *Save) {
	if save.Snapshot != nil {
		meta := save.Snapshot.GetMetadata()
		must(c.log.install(save.Snapshot))
		c.conf, c.changed = meta.GetConfState(), meta.GetIndex()
		c.applied = max(c.applied, meta.GetIndex())
		c.blank = false
	}
	must(c.log.Append(save.Entries))
	if save.HardState != nil {
		must(c.log.SetHardState(save.HardState))
	}
}

// Applied reports that the state machine contains these entries. They must be the oldest
// entries handed out in Ready.Committed and not yet reported. Entries that a snapshot has
// overtaken meanwhile are ignored.
func (c *Core) Applied(entries []*raftpb.Entry) {
	for len(entries) > 0 && entries[0].GetIndex() <= c.applied {
		entries = entries[1:]
	}
	if len(entries) == 0 {
		return
	}
	if len(entries) > len(c.applying) || entries[0] != c.applying[0] {
		panic(fmt.Sprintf("agreement: entry %d reported as applied out of order; %d entries are outstanding after %d",
			entries[0].GetIndex(), len(c.applying), c.applied))
	}
	c.applying = c.applying[len(entries):]
	c.applied = entries[len(entries)-1].GetIndex()
	c.acknowledge(entries)
}

func (c *Core) acknowledge(entries []*raftpb.Entry) {
	if len(entries) == 0 {
		return
	}
	must(c.node.Step(&raftpb.Message{
		Type:    raftpb.MsgStorageApplyResp.Enum(),
		To:      new(c.cfg.ID),
		From:    new(raft.LocalApplyThread),
		Entries: entries,
	}))
}

// must panics on an error that cannot occur unless memory or this package is
// broken.
func must(err error) {
	if err != nil {
		panic("agreement: " + err.Error())
	}
}
