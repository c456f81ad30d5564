package agreement

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
)

// Role is the current role of a member.
type Role uint8

const (
	Follower     Role = iota
	PreCandidate      // asks whether it could win, before it disturbs anyone
	Candidate
	Leader
)

var roleNames = [...]string{"follower", "pre-candidate", "candidate", "leader"}

func (r Role) String() string { return roleNames[r] }

func roleOf(s raft.StateType) Role {
	switch s {
	case raft.StateLeader:
		return Leader
	case raft.StateCandidate:
		return Candidate
	case raft.StatePreCandidate:
		return PreCandidate
	}
	return Follower
}

// Status is a member's view of the cluster.
type Status struct {
	ID      uint64
	Role    Role
	Term    uint64
	Vote    uint64 // whom this member voted for in Term; 0 for nobody
	Leader  uint64 // 0 when none is known
	Commit  uint64
	Applied uint64
	First   uint64 // the first entry still in memory
	Last    uint64 // the last durable entry
	// Snapshot is the index of the newest snapshot.
	Snapshot uint64
	Blank    bool // waits for a first snapshot: see the package comment
	// Transferee is the member that the leader is handing over to, or 0.
	Transferee uint64
	Voters     []uint64 // sorted; of the incoming half of a joint configuration
	Outgoing   []uint64 // the voters of the outgoing half, or none
	Learners   []uint64
	// Settled means that this member leads, and that a majority of the voters is enough even after
	// a crash of all: the former members are not needed any more.
	Settled bool
	// Peers is what a leader knows of every member, itself included, by ID.
	// It is empty on any other member.
	Peers []Peer
}

// Peer is what a leader knows about a member.
type Peer struct {
	ID      uint64
	Learner bool
	Match   uint64 // the last entry it is known to hold
	Next    uint64
	State   string // StateProbe, StateReplicate or StateSnapshot
	// Active means that the member was heard from since the leader last checked, at
	// most an election timeout ago.
	Active bool
}

// Status returns the member's view as of now.
func (c *Core) Status() Status {
	raw := c.node.Status()
	first, err := c.log.FirstIndex()
	must(err)
	s := Status{
		ID:         c.cfg.ID,
		Role:       roleOf(raw.RaftState),
		Term:       raw.GetTerm(),
		Vote:       raw.GetVote(),
		Leader:     raw.Lead,
		Commit:     raw.GetCommit(),
		Applied:    c.applied,
		First:      first,
		Last:       c.log.last(),
		Snapshot:   c.log.newest,
		Blank:      c.blank,
		Transferee: raw.LeadTransferee,
		Voters:     slices.Sorted(maps.Keys(raw.Config.Voters[0])),
		Outgoing:   slices.Sorted(maps.Keys(raw.Config.Voters[1])),
		Learners:   slices.Sorted(maps.Keys(raw.Config.Learners)),
	}
	s.Settled = c.role == Leader && c.settlement.done && len(s.Outgoing) == 0
	for _, id := range slices.Sorted(maps.Keys(raw.Progress)) {
		p := raw.Progress[id]
		s.Peers = append(s.Peers, Peer{ID: id, Learner: p.IsLearner, Match: p.Match, Next: p.Next,
			State: p.State.String(), Active: p.RecentActive})
	}
	return s
}

// Commit returns the index of the newest entry known to be committed.
func (c *Core) Commit() uint64 { return c.node.BasicStatus().GetCommit() }

// Blank reports whether this member waits for a first snapshot: see the
// package comment.
func (c *Core) Blank() bool { return c.blank }
