package replica

import (
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/internal/service/agreement"
)

// snapshots makes the snapshots of this server, one at a time: the host encodes a version of the
// state, then it stores the snapshot, and then the log is shortened.
type snapshots struct {
	*self
	logged   int    // bytes of log since the last snapshot
	wanted   bool   // a snapshot newer than the last is needed, however short the log is
	encoding uint64 // index of the version that the host encodes, or 0
	storing  uint64 // index of the snapshot that the host stores, or 0
	// levelled is the index of the entry that last changed the level, until a snapshot that
	// contains it is stored, or 0.
	levelled uint64
}

// newSnapshots returns the part for a server that continues from its newest snapshot.
func newSnapshots(own *self) snapshots {
	s := snapshots{self: own}
	if own.cfg.Stagger {
		s.logged = part(own.cfg.ID, own.cfg.SnapshotBytes)
	}
	return s
}

// part maps an id to a part of a whole, so that consecutive ids are far apart: the id is
// multiplied by 2^32 times the golden ratio, modulo 2^32 (Knuth, 1973).
func part(id uint64, whole int) int {
	return int(uint64(uint32(id*2654435769)) * uint64(whole) >> 32)
}

// start starts a snapshot when the log has grown enough or a newer one is needed,
// one at a time.
func (r *snapshots) start() {
	if r.logged < r.cfg.SnapshotBytes && !r.wanted || r.encoding != 0 || r.storing != 0 || r.out.Err != nil {
		return
	}
	r.out.Encode = Encode{r.applied, r.reg.Freeze()}
	r.encoding, r.logged, r.wanted = r.applied, 0, false
}

// Encoded takes the encoding that an Encode asked for, and makes the snapshot.
func (r *snapshots) Encoded(index uint64, data []byte) {
	if index != r.encoding {
		return // a snapshot from the leader came instead
	}
	r.encoding = 0
	made, err := r.core.CreateSnapshot(index, data)
	switch {
	case errors.Is(err, agreement.ErrSnapshotPending):
		// The leader's snapshot is being written to the disk, and is enough.
	case errors.Is(err, agreement.ErrSnapshotOld):
		r.wanted = true
	case err != nil:
		r.out.Err = fmt.Errorf("snapshot at index %d: %w", index, err)
	default:
		// It also serves a peer that asked while it was being made, but not a level that has
		// changed meanwhile.
		r.out.Snapshot, r.storing, r.wanted = made, index, index < r.levelled
	}
}

// SnapshotStored reports that the snapshot is durable, and shortens the log.
func (r *snapshots) SnapshotStored() {
	// This fails while a newer snapshot from the leader is being stored, which shortens the
	// log more.
	_ = r.core.Compact(r.storing)
	if r.storing >= r.levelled {
		r.levelled = 0
	}
	r.storing = 0
}

// levelChanged notes that the entry applied last has changed the level.
func (r *snapshots) levelChanged() { r.wanted, r.levelled = true, r.applied }

// superseded notes that a snapshot from the leader was stored and has replaced the state.
func (r *snapshots) superseded() {
	r.logged, r.encoding, r.wanted, r.levelled = 0, 0, false, 0
}

// Settled reports whether every release that reads the level of the cluster can start with what
// is on this server's disk: its newest snapshot was made after the last change of the level.
func (r *snapshots) Settled() bool { return r.levelled == 0 }
