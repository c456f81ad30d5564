package agreement

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// memoryLog is the part of the log that raft reads: everything that is durable
// and not yet compacted, and the newest snapshot.
type memoryLog struct {
	*raft.MemoryStorage
	// fresh reports whether a snapshot at an index is new enough to be sent. A member
	// that was added after the snapshot was made is not in it. It would refuse the snapshot
	// and never be sent another.
	fresh func(index uint64) bool
	// wanted is set if a snapshot was requested and none is fresh.
	wanted bool
	// newest is the index of the newest snapshot.
	newest uint64
}

func newMemoryLog(disk Disk) *memoryLog {
	l := &memoryLog{MemoryStorage: raft.NewMemoryStorage()}
	if disk.Snapshot != nil {
		must(l.install(disk.Snapshot))
	}
	must(l.SetHardState(disk.HardState))
	must(l.Append(disk.Entries))
	return l
}

// Snapshot returns the newest snapshot if it is fresh; otherwise it asks the caller of the
// Core for one, and raft tries again at the peer's next heartbeat.
func (l *memoryLog) Snapshot() (*raftpb.Snapshot, error) {
	if !l.fresh(l.newest) {
		l.wanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return l.MemoryStorage.Snapshot()
}

// install replaces the whole log by a snapshot.
func (l *memoryLog) install(snapshot *raftpb.Snapshot) error {
	l.newest = snapshot.GetMetadata().GetIndex()
	return l.ApplySnapshot(snapshot)
}

// last is the index of the last durable entry.
func (l *memoryLog) last() uint64 {
	index, err := l.LastIndex()
	must(err)
	return index
}

// Bootstrap returns the snapshot from which every founding member starts. It
// depends only on its arguments, in any order of the voters, so founders with the
// same configuration agree on it without a message.
func Bootstrap(voters []uint64, data []byte) *raftpb.Snapshot {
	voters = slices.Clone(voters)
	slices.Sort(voters)
	return &raftpb.Snapshot{
		Data: data,
		Metadata: &raftpb.SnapshotMetadata{
			Index:     new(uint64(1)),
			Term:      new(uint64(1)),
			ConfState: &raftpb.ConfState{Voters: voters, AutoLeave: new(false)},
		},
	}
}

// DecodeChange returns the change in a configuration entry. The change
// by which raft leaves a joint configuration is empty.
func DecodeChange(entry *raftpb.Entry) (*raftpb.ConfChangeV2, error) {
	var change raftpb.ConfChangeI
	var err error
	switch entry.GetType() {
	case raftpb.EntryConfChange:
		v1 := new(raftpb.ConfChange)
		change, err = v1, proto.Unmarshal(entry.GetData(), v1)
	case raftpb.EntryConfChangeV2:
		v2 := new(raftpb.ConfChangeV2)
		change, err = v2, proto.Unmarshal(entry.GetData(), v2)
	default:
		return nil, fmt.Errorf("agreement: entry %d: type %v is not a configuration change", entry.GetIndex(), entry.GetType())
	}
	if err != nil {
		return nil, fmt.Errorf("agreement: configuration change at entry %d is unreadable: %w", entry.GetIndex(), err)
	}
	return change.AsV2(), nil
}

// ApplyChange applies a committed configuration entry and returns the resulting
// configuration. It must be called for every such entry, in order. An error
// means that the entry cannot be read; the member must stop.
func (c *Core) ApplyChange(entry *raftpb.Entry) (*raftpb.ConfState, error) {
	change, err := DecodeChange(entry)
	if err != nil {
		return nil, err
	}
	c.conf, c.changed = c.node.ApplyConfChange(change), entry.GetIndex()
	c.observe()
	c.unsettle(c.changed)
	return c.conf, nil
}

// CreateSnapshot returns a snapshot for the disk, with data as the state of the state machine
// at index. Applied must have reported the index, which must not be older than the
// configuration. The snapshot may be sent to peers at once, since it has only agreed state.
func (c *Core) CreateSnapshot(index uint64, data []byte) (*raftpb.Snapshot, error) {
	if c.installing() {
		return nil, ErrSnapshotPending
	}
	if index < c.changed {
		return nil, ErrSnapshotOld
	}
	if index > c.applied {
		return nil, fmt.Errorf("agreement: snapshot at index %d: only %d is applied", index, c.applied)
	}
	if index <= c.log.newest {
		return nil, fmt.Errorf("agreement: snapshot at index %d refused: there is one at %d", index, c.log.newest)
	}
	snapshot, err := c.log.CreateSnapshot(index, c.conf, data)
	must(err)
	// The requested snapshot now exists.
	c.log.newest, c.log.wanted = index, false
	return snapshot, nil
}

// installing reports whether a snapshot of the leader is being written to the disk.
func (c *Core) installing() bool {
	return slices.ContainsFunc(c.saving, func(s *Save) bool { return s.Snapshot != nil })
}

// Compact drops the entries up to index from memory, except for the tail that Config
// keeps. Index must not be above that of the newest snapshot, which the caller
// has made durable.
func (c *Core) Compact(index uint64) error {
	if c.installing() {
		return ErrSnapshotPending
	}
	if index > c.log.newest {
		return fmt.Errorf("agreement: compaction up to index %d refused: the newest snapshot is at %d", index, c.log.newest)
	}
	if index = c.tailStart(index); index == 0 {
		return nil
	}
	return c.log.Compact(index)
}

// tailStart returns the last index to drop so that the tail from there to
// index keeps its bounds, or 0 if nothing is to be dropped.
func (c *Core) tailStart(index uint64) uint64 {
	first, err := c.log.FirstIndex()
	must(err)
	if index < first {
		return 0
	}
	entries, err := c.log.Entries(first, index+1, 1<<62)
	must(err)
	var kept int
	var bytes uint64
	for _, e := range slices.Backward(entries) {
		bytes += uint64(proto.Size(e))
		if kept >= c.cfg.KeepEntries || bytes > c.cfg.KeepBytes {
			return e.GetIndex()
		}
		kept++
	}
	return 0
}
