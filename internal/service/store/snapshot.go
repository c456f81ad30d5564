package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// keepSnapshots is the number of snapshots that stay on disk. Only the newest one is ever
// read. The previous one, with the log since, allows an operator to go back.
const keepSnapshots = 2

// position names an entry of the log, or a snapshot by the last entry it contains.
type position struct{ index, term uint64 }

func positionOf(snapshot *raftpb.Snapshot) position {
	return position{snapshot.GetMetadata().GetIndex(), snapshot.GetMetadata().GetTerm()}
}

// fileName returns the name of the file in etcd's snap package.
func (p position) fileName() string { return fmt.Sprintf("%016x-%016x.snap", p.term, p.index) }

// WriteSnapshot makes the file of a snapshot durable while saves continue. A Save with the same
// snapshot must follow, which writes only a record. Until then the file has no effect: after
// a crash the log is as if there were no snapshot, and the next Save with a newer snapshot, or
// the next Open, may remove the file.
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

// writeFile makes the file of a snapshot durable, including its name in the directory.
func (s *Store) writeFile(snapshot *raftpb.Snapshot) error {
	path := filepath.Join(s.snapDir(), positionOf(snapshot).fileName())
	if err := writeSnapshotFile(path, snapshot); err != nil {
		return err
	}
	return syncDirectory(s.snapDir())
}

// recordSnapshot adds the record of a snapshot to the log, once its file is durable. The record
// takes effect only with the hard state that ends the Save.
func (s *Store) recordSnapshot(snapshot *raftpb.Snapshot) error {
	if positionOf(snapshot) != s.written {
		if err := s.writeFile(snapshot); err != nil {
			return err
		}
	}
	meta := snapshot.GetMetadata()
	conf := meta.GetConfState()
	if conf == nil {
		conf = &raftpb.ConfState{} // the wal package requires one
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

// purge removes all snapshots but the newest two, and the segments that the older of these does
// not need. Files that cannot be removed only waste space, so a failure is logged and
// tried again after the next snapshot.
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

// purgeSegments removes the segments before the one with the first entry after index: the oldest
// first, and durably before the next, so that there is never a gap.
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

// syncEvery is how many bytes of a snapshot's file are written between two syncs. A single sync
// of a large file would delay those of the log by some 100 ms.
const syncEvery = 1 << 20

// snapshotFile returns the content of a snapshot's file in the format of etcd's snap package: a
// message with a checksum and the encoded snapshot. It returns parts, because that package
// makes two copies of the snapshot, which may have hundreds of MB.
func snapshotFile(snapshot *raftpb.Snapshot) ([][]byte, error) {
	metadata, err := proto.Marshal(snapshot.GetMetadata())
	if err != nil {
		return nil, err
	}
	data := snapshot.GetData()
	before := protowire.AppendTag(nil, 1, protowire.BytesType)
	before = protowire.AppendVarint(before, uint64(len(data)))
	after := protowire.AppendTag(nil, 2, protowire.BytesType)
	after = protowire.AppendBytes(after, metadata)
	crc, size := uint32(0), 0
	for _, part := range [][]byte{before, data, after} {
		crc, size = crc32.Update(crc, castagnoli, part), size+len(part)
	}
	head := protowire.AppendTag(nil, 1, protowire.VarintType)
	head = protowire.AppendVarint(head, uint64(crc))
	head = protowire.AppendTag(head, 2, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(size))
	return [][]byte{head, before, data, after}, nil
}

// writeSnapshotFile writes and syncs the file of a snapshot. If it fails it tries to leave no
// file.
func writeSnapshotFile(path string, snapshot *raftpb.Snapshot) error {
	parts, err := snapshotFile(snapshot)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = writeParts(f, parts)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func writeParts(f *os.File, parts [][]byte) error {
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), syncEvery)
			if _, err := f.Write(part[:n]); err != nil {
				return err
			}
			if part = part[n:]; n == syncEvery {
				if err := f.Sync(); err != nil {
					return err
				}
			}
		}
	}
	return f.Sync()
}
