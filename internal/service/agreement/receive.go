package agreement

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// check refuses messages that no correct peer sends, because raft trusts most of a message
// and would panic. It also refuses proposals and reads of other members:
// a member proposes and reads only for itself.
func (c *Core) check(m *raftpb.Message) error {
	refuse := func(format string, args ...any) error {
		return &MessageError{Type: m.GetType(), From: m.GetFrom(), Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case m == nil:
		return refuse("the message is empty")
	case m.GetTo() != c.cfg.ID:
		return refuse("it is addressed to member %d, this is member %d", m.GetTo(), c.cfg.ID)
	case m.GetFrom() == 0 || m.GetFrom() == c.cfg.ID || raft.IsLocalMsgTarget(m.GetFrom()):
		return refuse("a peer cannot have this id")
	case !slices.Contains(fromPeers, m.GetType()):
		return refuse("members do not send this type to each other")
	case m.GetTerm() == 0:
		return refuse("it has no term")
	case len(m.GetResponses()) > 0:
		return refuse("it carries responses meant for the sender's own disk")
	}
	switch m.GetType() {
	case raftpb.MsgApp:
		return c.checkAppend(m, refuse)
	case raftpb.MsgSnap:
		return c.checkSnapshot(m, refuse)
	case raftpb.MsgAppResp:
		return c.checkAcknowledged(m)
	case raftpb.MsgHeartbeat:
		return c.checkHeartbeat(m)
	}
	return nil
}

// fromPeers are the messages members send each other.
var fromPeers = []raftpb.MessageType{
	raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp,
	raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
	raftpb.MsgSnap, raftpb.MsgTimeoutNow,
}

type refusal func(format string, args ...any) error

func (c *Core) checkAppend(m *raftpb.Message, refuse refusal) error {
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		if e.GetIndex() != index+1 {
			return refuse("entry %d follows entry %d", e.GetIndex(), index)
		}
		if e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return refuse("entry %d has term %d, outside %d to %d", e.GetIndex(), e.GetTerm(), term, m.GetTerm())
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
	return nil
}

func (c *Core) checkSnapshot(m *raftpb.Message, refuse refusal) error {
	meta := m.GetSnapshot().GetMetadata()
	switch {
	case raft.IsEmptySnap(m.GetSnapshot()):
		return refuse("it carries no snapshot")
	case meta.GetTerm() > m.GetTerm():
		return refuse("the snapshot has term %d, the message %d", meta.GetTerm(), m.GetTerm())
	case len(meta.GetConfState().GetVoters()) == 0:
		return refuse("the snapshot names no voters")
	}
	return nil
}

// checkHeartbeat detects a lost log. A leader names a commit index that this
// member has acknowledged, and an acknowledged entry is on disk and in the
// in-memory log; raft itself would panic.
func (c *Core) checkHeartbeat(m *raftpb.Message) error {
	if last := c.log.last(); m.GetTerm() >= c.term && m.GetCommit() > last {
		return &LostLogError{Leader: m.GetFrom(), Commit: m.GetCommit(), Last: last}
	}
	return nil
}

// checkAcknowledged detects that this leader's log differs from that of the others. A
// member acknowledges what the leader sent it, or what is committed. A leader has
// both, although perhaps not on its disk yet; raft itself would count the member for
// entries that it never saw.
func (c *Core) checkAcknowledged(m *raftpb.Message) error {
	last := c.log.last()
	for _, save := range c.saving {
		if n := len(save.Entries); n > 0 {
			last = max(last, save.Entries[n-1].GetIndex())
		}
	}
	if c.role != Leader || m.GetTerm() != c.term || m.GetReject() || m.GetIndex() <= last {
		return nil
	}
	return &LostLogError{Peer: m.GetFrom(), Commit: m.GetIndex(), Last: last}
}

// takenWhenBlank lets a blank member accept messages only of a leader that counts it as a
// learner. While the leader counts it as a voter, it does not answer: a majority must not
// contain a member that has lost what it promised. A snapshot in which it is a voter is from
// a cluster that still counts on that vote.
func (c *Core) takenWhenBlank(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		return m.GetReject()
	case raftpb.MsgSnap:
		return slices.Contains(m.GetSnapshot().GetMetadata().GetConfState().GetLearners(), c.cfg.ID)
	}
	return false
}

// markLearner tells a learner that it is one, in a field that raft leaves unused in these
// messages. A blank member relies on it.
func (c *Core) markLearner(m *raftpb.Message) {
	switch m.GetType() {
	case raftpb.MsgApp, raftpb.MsgHeartbeat:
		if slices.Contains(c.conf.GetLearners(), m.GetTo()) {
			m.Reject = new(true)
		}
	}
}
