package store

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// The file of a snapshot is what etcd's snap package would have written, which reads it.
func TestSnapshotFileIsEtcds(t *testing.T) {
	for _, size := range []int{1, 127, 128, syncEvery - 1, syncEvery, 2*syncEvery + 1} {
		at := position{index: 300, term: 7}
		snapshot := &raftpb.Snapshot{
			Data:     bytes.Repeat([]byte("state"), size/5+1)[:size],
			Metadata: &raftpb.SnapshotMetadata{Index: &at.index, Term: &at.term, ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 300}, Learners: []uint64{4}}},
		}
		path := filepath.Join(t.TempDir(), at.fileName())
		if err := writeSnapshotFile(path, snapshot); err != nil {
			t.Fatal(err)
		}
		theirs := t.TempDir()
		if err := snap.New(zap.NewNop(), theirs).SaveSnap(snapshot); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(theirs, at.fileName()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d bytes of state: the file has %d bytes, etcd's %d, and they differ", size, len(got), len(want))
		}
		if read, err := snap.Read(zap.NewNop(), path); err != nil || !proto.Equal(read, snapshot) {
			t.Errorf("%d bytes of state: etcd reads another snapshot: %v", size, err)
		}
	}
}

// A file that cannot be written whole does not stay.
func TestSnapshotFileIsWholeOrAbsent(t *testing.T) {
	dir := t.TempDir()
	if err := writeSnapshotFile(filepath.Join(dir, "missing", "x.snap"), &raftpb.Snapshot{}); err == nil {
		t.Error("written into a directory that is missing")
	}
	const full = "/dev/full" // takes no byte
	if _, err := os.Stat(full); err != nil {
		t.Skip(err)
	}
	path := filepath.Join(dir, "x.snap")
	if err := os.Symlink(full, path); err != nil {
		t.Fatal(err)
	}
	if err := writeSnapshotFile(path, &raftpb.Snapshot{Data: []byte("state")}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("written to a full disk: %v", err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not whole stays: %v", err)
	}
}
