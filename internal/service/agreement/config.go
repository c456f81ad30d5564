package agreement

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Config has the identity and the limits of a member. A zero limit means the
// default of WithDefaults.
type Config struct {
	// ID is this member's number in the cluster, 1 or more.
	ID uint64

	// HeartbeatTicks is the number of ticks between the heartbeats of a
	// leader.
	HeartbeatTicks int
	// ElectionTicks is the number of ticks without a message from a leader after which a
	// member starts an election. The actual number is drawn again each time, from
	// ElectionTicks to 2*ElectionTicks-1. A leader that has not heard from a majority for
	// ElectionTicks steps down.
	ElectionTicks int

	// MaxMessageBytes bounds the entries of one append message.
	MaxMessageBytes uint64
	// MaxApplyingBytes bounds the entries handed out in Ready.Committed and
	// not yet acknowledged by Applied.
	MaxApplyingBytes uint64
	// MaxUncommittedBytes bounds the proposals a leader holds that are not yet
	// committed; beyond it Propose answers ErrBusy.
	MaxUncommittedBytes uint64
	// MaxInflightMessages and MaxInflightBytes bound what is sent to one peer
	// and not yet acknowledged by it.
	MaxInflightMessages int
	MaxInflightBytes    uint64
	// MaxReads bounds the tickets of ReadIndex not yet answered.
	MaxReads int

	// KeepEntries and KeepBytes bound the tail of the log that Compact leaves
	// in memory below the snapshot, so that a peer that is a little behind is
	// served from the log. Whichever is reached first decides; KeepBytes of 0
	// means the default, KeepEntries below 0 means to keep nothing.
	KeepEntries int
	KeepBytes   uint64

	// Log receives raft's log messages; nil discards them.
	Log func(level Level, text string)
	// Verbose includes LevelDebug, which is a line for almost every message.
	Verbose bool
}

// WithDefaults returns c with every zero limit replaced by its default.
func (c Config) WithDefaults() Config {
	c.MaxMessageBytes = orElse(c.MaxMessageBytes, 1<<20)
	c.MaxApplyingBytes = orElse(c.MaxApplyingBytes, 8<<20)
	c.MaxUncommittedBytes = orElse(c.MaxUncommittedBytes, 32<<20)
	c.MaxInflightMessages = orElse(c.MaxInflightMessages, 256)
	c.MaxInflightBytes = orElse(c.MaxInflightBytes, 32<<20)
	c.MaxReads = orElse(c.MaxReads, 4096)
	c.KeepEntries = orElse(c.KeepEntries, 5000)
	c.KeepBytes = orElse(c.KeepBytes, 16<<20)
	return c
}

func orElse[T int | uint64](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// Validate says what is wrong with a Config that has its defaults.
func (c Config) Validate() error {
	switch {
	case c.ID == 0 || raft.IsLocalMsgTarget(c.ID):
		return fmt.Errorf("agreement: member id %d is reserved; use a number from 1 up", c.ID)
	case c.HeartbeatTicks < 1:
		return fmt.Errorf("agreement: HeartbeatTicks is %d; it must be at least 1", c.HeartbeatTicks)
	case c.ElectionTicks <= c.HeartbeatTicks:
		return fmt.Errorf("agreement: ElectionTicks is %d; it must be larger than HeartbeatTicks (%d)", c.ElectionTicks, c.HeartbeatTicks)
	case c.MaxInflightMessages < 1:
		return fmt.Errorf("agreement: MaxInflightMessages is %d; it must be at least 1", c.MaxInflightMessages)
	case c.MaxInflightBytes < c.MaxMessageBytes:
		return fmt.Errorf("agreement: MaxInflightBytes is %d; it must be at least MaxMessageBytes (%d)", c.MaxInflightBytes, c.MaxMessageBytes)
	case c.MaxReads < 1:
		return fmt.Errorf("agreement: MaxReads is %d; it must be at least 1", c.MaxReads)
	}
	return nil
}

// Disk is what a member finds on its disk when it starts. The zero Disk is
// that of a blank member, which joins an existing cluster.
type Disk struct {
	HardState *raftpb.HardState // nil when none was saved
	Snapshot  *raftpb.Snapshot  // nil for a blank member
	Entries   []*raftpb.Entry   // those after Snapshot, without a gap
	// Applied is the last index that the state machine already contains; 0
	// means the index of the snapshot.
	Applied uint64
}

// normal returns the disk with its implied values filled in, or an error if no
// member can start from it.
func (d Disk) normal() (Disk, error) {
	if err := d.checkEntries(); err != nil {
		return d, err
	}
	base := d.Snapshot.GetMetadata()
	last := base.GetIndex() + uint64(len(d.Entries))
	// A snapshot is committed state, so a member that holds one knows at least
	// its term and that its index is committed.
	d.HardState = &raftpb.HardState{
		Term:   new(max(d.HardState.GetTerm(), base.GetTerm())),
		Vote:   new(d.HardState.GetVote()),
		Commit: new(max(d.HardState.GetCommit(), base.GetIndex())),
	}
	d.Applied = max(d.Applied, base.GetIndex())
	if commit := d.HardState.GetCommit(); commit > last {
		return d, fmt.Errorf("agreement: the hard state says index %d is committed, but the log ends at %d", commit, last)
	}
	if d.Applied > d.HardState.GetCommit() {
		return d, fmt.Errorf("agreement: index %d is applied, but only %d is committed", d.Applied, d.HardState.GetCommit())
	}
	return d, nil
}

func (d Disk) checkEntries() error {
	index, term := d.Snapshot.GetMetadata().GetIndex(), d.Snapshot.GetMetadata().GetTerm()
	if index == 0 && len(d.Entries) > 0 {
		return errors.New("agreement: the disk holds entries but no snapshot to start them from")
	}
	for _, e := range d.Entries {
		if e.GetIndex() != index+1 {
			return fmt.Errorf("agreement: entry %d follows entry %d on disk; the log has a gap", e.GetIndex(), index)
		}
		if e.GetTerm() < term {
			return fmt.Errorf("agreement: entry %d has term %d, but the entry before it has term %d", e.GetIndex(), e.GetTerm(), term)
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
	return nil
}
