package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// keepSnapshots is how many snapshots stay on disk. Only the newest is ever
// read; the one before it, with the log since, is for an operator to fall back
// on.
const keepSnapshots = 2

// position names an entry of the log, or a snapshot by the last entry it contains.
type position struct{ index, term uint64 }

func positionOf(snapshot *raftpb.Snapshot) position {
	return position{snapshot.GetMetadata().GetIndex(), snapshot.GetMetadata().GetTerm()}
}

// fileName is the name that etcd's snap package gives the file.
func (p position) fileName() string { return fmt.Sprintf("%016x-%016x.snap", p.term, p.index) }

// WriteSnapshot makes the file of a snapshot durable while saves go on. A Save with
// the same snapshot must follow, and writes only a record. Until then the file
// counts for nothing: a crash leaves the log as if there were no snapshot, and the
// next Save with a newer snapshot, or the next Open, may remove the file.
func (s *Store) WriteSnapshot(snapshot *raftpb.Snapshot) error {
	err := s.writeFile(snapshot)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.err == nil {
		s.err = s.failure(err)
	}
	if s.err == nil {
		s.written = positionOf(snapshot)
	}
	return s.err
}

// writeFile makes the file of a snapshot durable, its name in the directory
// included.
func (s *Store) writeFile(snapshot *raftpb.Snapshot) error {
	path := filepath.Join(s.snapDir(), positionOf(snapshot).fileName())
	if err := writeSnapshotFile(path, snapshot); err != nil {
		return err
	}
	return syncDirectory(s.snapDir())
}

// recordSnapshot adds the record of a snapshot to the log, once its file is durable.
// The record counts only once the hard state that ends the Save stands behind it.
func (s *Store) recordSnapshot(snapshot *raftpb.Snapshot) error {
	if positionOf(snapshot) != s.written {
		if err := s.writeFile(snapshot); err != nil {
			return err
		}
	}
	meta := snapshot.GetMetadata()
	conf := meta.GetConfState()
	if conf == nil {
		conf = &raftpb.ConfState{} // the wal package asks for one
	}
	return s.wal.SaveSnapshot(&walpb.Snapshot{Index: new(meta.GetIndex()), Term: new(meta.GetTerm()), ConfState: conf})
}

func (s *Store) readSnapshot(at position) (*raftpb.Snapshot, error) {
	path := filepath.Join(s.snapDir(), at.fileName())
	snapshot, err := snap.Read(zap.NewNop(), path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, damage(path, "is missing, and the log goes on from it: restore this snapshot, or empty the directory and add the server again")
	case err != nil:
		return nil, &CorruptError{Path: path, Reason: "the checksum over the whole file does not match: " + err.Error()}
	case positionOf(snapshot) != at:
		return nil, &CorruptError{Path: path, Reason: "it contains another snapshot than its name says"}
	}
	return snapshot, nil
}

// stillThere returns the newest snapshots that the log names and that are on
// disk, oldest first.
func (s *Store) stillThere(snaps []position) ([]position, error) {
	var kept []position
	for _, at := range slices.Backward(snaps) {
		there, err := exists(filepath.Join(s.snapDir(), at.fileName()))
		if err != nil {
			return nil, err
		}
		if !there {
			break
		}
		kept = append(kept, at)
	}
	slices.Reverse(kept)
	return kept, nil
}

// purge removes the snapshots beyond the newest two and the segments of the
// log that the older of them does without. What cannot be removed is only a
// waste of space, so it is logged and tried again after the next snapshot.
func (s *Store) purge() {
	if len(s.kept) == 0 {
		return
	}
	s.kept = s.kept[max(0, len(s.kept)-keepSnapshots):]
	if err := errors.Join(s.purgeSnapshots(), s.purgeSegments(s.kept[0].index)); err != nil {
		s.log.Warn("cannot remove old files", "dir", s.dir, "err", err)
	}
}

func (s *Store) purgeSnapshots() error {
	files, err := os.ReadDir(s.snapDir())
	if err != nil {
		return err
	}
	for _, f := range files {
		kept := slices.ContainsFunc(s.kept, func(at position) bool { return at.fileName() == f.Name() })
		if kept || !strings.HasSuffix(f.Name(), ".snap") {
			continue
		}
		if err := os.Remove(filepath.Join(s.snapDir(), f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// purgeSegments removes the segments before the one that holds the first entry after
// index: the oldest first, and for good before the next, so that no gap ever shows.
func (s *Store) purgeSegments(index uint64) error {
	if err := s.wal.ReleaseLockTo(index); err != nil {
		return err
	}
	segments, err := listSegments(s.walDir())
	if err != nil {
		return err
	}
	needed := 0
	for i, segment := range segments {
		if segment.first <= index {
			needed = i
		}
	}
	for _, segment := range segments[:needed] {
		if err := errors.Join(os.Remove(segment.path), syncDirectory(s.walDir())); err != nil {
			return err
		}
	}
	return nil
}
