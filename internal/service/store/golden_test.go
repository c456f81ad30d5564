package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/test/golden"
)

const goldenLog = "0000000000000000-0000000000000000.wal"

// TestGoldenDirectory: a data directory of the first release opens with all its data, and
// can be continued.
func TestGoldenDirectory(t *testing.T) {
	record := founding.Record{{ID: 1, UID: 11}, {ID: 2, UID: 22}, {ID: 3, UID: 1 << 63}}
	id := testID
	id.UID = 22
	kept := filepath.Join(golden.Dir(1), "data")
	if golden.Writes(t, 1, "data") {
		writeGolden(t, kept, id, record)
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	// The zeros that follow in a segment are not kept.
	if err := os.Truncate(filepath.Join(dir, "wal", goldenLog), wal.SegmentSizeBytes); err != nil {
		t.Fatal(err)
	}
	for _, small := range []struct {
		name string
		made func(dir string) error
	}{
		{metaName, func(dir string) error { return writeMeta(dir, newMeta(id)) }},
		{foundingName, func(dir string) error { return (&Store{dir: dir}).SaveRecord(record) }},
	} {
		made := t.TempDir()
		if err := small.made(made); err != nil {
			t.Fatal(err)
		}
		golden.Same(t, 1, filepath.Join("data", small.name), read(t, filepath.Join(made, small.name)))
	}
	s, state, err := Open(dir, id, quiet)
	if err != nil {
		t.Fatal(err)
	}
	want := &State{UID: 22, Record: record, HardState: hard(3, 1, 7), Snapshot: snapshotAt(4, 2, "state"), Entries: entries(5, 8, 3, 40)}
	if diff := cmp.Diff(want, state, protocmp.Transform()); diff != "" {
		t.Errorf("the directory holds something else (-want +got):\n%s", diff)
	}
	if at := (mark{7, 3}); s.reached.at != at {
		t.Errorf("the log had reached %+v, want %+v", s.reached.at, at)
	}
	mustSave(t, s, hard(3, 1, 9), entries(9, 9, 3, 40), nil)
	mustClose(t, s)
	s, state, err = Open(dir, id, quiet)
	if err != nil || len(state.Entries) != 5 {
		t.Fatalf("after one more save: %+v, %v", state, err)
	}
	mustClose(t, s)
}

func writeGolden(t *testing.T, dir string, id Identity, record founding.Record) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s, _, err := Open(dir, id, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SaveRecord(record); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, hard(2, 1, 1), nil, snapshotAt(1, 1, "founding"))
	mustSave(t, s, hard(2, 1, 4), entries(2, 4, 2, 40), nil)
	mustSave(t, s, hard(2, 1, 4), nil, snapshotAt(4, 2, "state"))
	mustSave(t, s, hard(3, 1, 7), entries(5, 8, 3, 40), nil)
	mustClose(t, s)
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "wal", goldenLog)
	if err := os.WriteFile(log, append(bytes.TrimRight(read(t, log), "\x00"), make([]byte, 8)...), 0o644); err != nil {
		t.Fatal(err)
	}
	spare, err := filepath.Glob(filepath.Join(dir, "wal", "*.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range spare {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
