package store

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestMain also is the child process of the tests that need one: see
// child_test.go.
func TestMain(m *testing.M) {
	if runChild() {
		return
	}
	goleak.VerifyTestMain(m)
}

var testID = Identity{Cluster: 0xc0ffee, Server: 2}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// smallSegments makes a segment hold a few saves.
func smallSegments(t testing.TB, size int64) {
	before := wal.SegmentSizeBytes
	wal.SegmentSizeBytes = size
	t.Cleanup(func() { wal.SegmentSizeBytes = before })
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: new(term), Vote: new(vote), Commit: new(commit)}
}

// entries returns the entries from index from up to and including to.
func entries(from, to, term uint64, size int) []*raftpb.Entry {
	var out []*raftpb.Entry
	for i := from; i <= to; i++ {
		data := bytes.Repeat([]byte{byte('a' + i%26)}, size)
		out = append(out, &raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Index: new(i), Term: new(term), Data: data})
	}
	return out
}

func snapshotAt(index, term uint64, data string) *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: []byte(data), Metadata: &raftpb.SnapshotMetadata{
		Index: new(index), Term: new(term), ConfState: &raftpb.ConfState{Voters: []uint64{1, 2, 3}},
	}}
}

func mustOpen(t testing.TB, dir string) (*Store, *State) {
	t.Helper()
	s, state, err := Open(dir, testID, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // for tests that fail; the rest has closed it
	return s, state
}

func mustSave(t testing.TB, s *Store, hs *raftpb.HardState, e []*raftpb.Entry, snapshot *raftpb.Snapshot) {
	t.Helper()
	if err := s.Save(hs, e, snapshot, true); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// reopen returns what a directory holds.
func reopen(t testing.TB, dir string) *State {
	t.Helper()
	s, state := mustOpen(t, dir)
	mustClose(t, s)
	return state
}

func wantState(t testing.TB, got *State, hs *raftpb.HardState, e []*raftpb.Entry, snapshot *raftpb.Snapshot) {
	t.Helper()
	want := &State{UID: got.UID, Fresh: hs == nil, HardState: hs, Entries: e, Snapshot: snapshot}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the directory holds something else (-want +got):\n%s", diff)
	}
}

func TestRestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	s, state := mustOpen(t, dir)
	wantState(t, state, nil, nil, nil)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v (%v), want 0700", info.Mode(), err)
	}
	mustClose(t, s)

	s, again := mustOpen(t, dir)
	if !again.Fresh || again.UID != state.UID || again.UID == 0 {
		t.Errorf("opened again before the first save: %+v, want fresh with uid %d", again, state.UID)
	}
	boot := snapshotAt(1, 1, "boot")
	mustSave(t, s, nil, nil, boot)
	mustSave(t, s, hard(2, 1, 1), entries(2, 4, 2, 10), nil)
	mustSave(t, s, hard(3, 0, 4), entries(4, 6, 3, 10), nil) // replaces entry 4
	mustSave(t, s, nil, entries(7, 7, 3, 0), nil)            // an entry without data
	mustClose(t, s)

	s, state = mustOpen(t, dir)
	want := append(entries(2, 3, 2, 10), entries(4, 6, 3, 10)...)
	wantState(t, state, hard(3, 0, 4), append(want, entries(7, 7, 3, 0)...), boot)
	mustSave(t, s, nil, entries(8, 8, 3, 10), nil)
	mustClose(t, s)
	if state = reopen(t, dir); len(state.Entries) != 7 {
		t.Errorf("%d entries after another restart, want 7", len(state.Entries))
	}
}

// A process that the program is starting inherits the file locks of a closed store until
// it executes its own program. Opening the store waits for that.
func TestFilesThatAForkStillHas(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "wal", "*.wal"))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %q (%v)", segments, err)
	}
	for _, path := range []string{segments[0], filepath.Join(dir, "LOCK")} {
		held, err := fileutil.TryLockFile(path, os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(100*time.Millisecond, func() { held.Close() })
		s, _ = mustOpen(t, dir)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFirstSnapshotSetsTheHardState(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustClose(t, s)
	wantState(t, reopen(t, dir), hard(1, 0, 1), nil, snapshotAt(1, 1, "boot"))
}

// TestCommitIndexIsLazy: a save that only moves the commit index costs no
// write, and is not lost by a clean stop.
func TestCommitIndexIsLazy(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 4, 2, 10), nil)
	before := scanned(t, dir)
	if err := s.Save(hard(2, 1, 3), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	if after := scanned(t, dir); after.saves != before.saves {
		t.Errorf("the log has %d saves, had %d", after.saves, before.saves)
	}
	if err := s.Save(hard(2, 1, 4), nil, nil, true); err != nil {
		t.Fatal(err)
	}
	if after := scanned(t, dir); after.hard.GetCommit() != 4 {
		t.Errorf("a synced save left the commit index at %d, want 4", after.hard.GetCommit())
	}
	mustSave(t, s, nil, entries(5, 5, 2, 10), nil)
	if err := s.Save(hard(2, 1, 5), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	if state := reopen(t, dir); state.HardState.GetCommit() != 5 {
		t.Errorf("the commit index is %d after a clean stop, want 5", state.HardState.GetCommit())
	}
}

func scanned(t testing.TB, dir string) *found {
	t.Helper()
	f, err := scan(filepath.Join(dir, "wal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSnapshotOfTheLeader replaces a log that ends before it.
func TestSnapshotOfTheLeader(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 4, 2, 10), nil)
	mustSave(t, s, hard(5, 0, 100), entries(101, 103, 5, 10), snapshotAt(100, 4, "state"))
	mustClose(t, s)
	wantState(t, reopen(t, dir), hard(5, 0, 100), entries(101, 103, 5, 10), snapshotAt(100, 4, "state"))
}

// TestSnapshotReplacesTheLog: when a snapshot of the leader is saved, raft drops its
// whole log unless it holds the snapshot's last entry, and a restart must not find what
// was dropped. The member's own snapshot keeps the entries after it, whenever it reaches
// the disk.
func TestSnapshotReplacesTheLog(t *testing.T) {
	type step func(s *Store)
	log := func(from, to, term uint64) step {
		return func(s *Store) { mustSave(t, s, hard(9, 1, 1), entries(from, to, term, 10), nil) }
	}
	snap := func(index, term uint64) step {
		return func(s *Store) { mustSave(t, s, hard(9, 1, index), nil, snapshotAt(index, term, "state")) }
	}
	both := func(index, term, to uint64) step {
		return func(s *Store) {
			mustSave(t, s, hard(9, 1, index), entries(index+1, to, term, 10), snapshotAt(index, term, "state"))
		}
	}
	for name, c := range map[string]struct {
		steps []step
		want  []*raftpb.Entry
	}{
		"of another log":                {[]step{log(2, 12, 2), snap(8, 4)}, nil},
		"of another log, of lower term": {[]step{log(2, 7, 2), log(8, 12, 5), snap(8, 4)}, nil},
		"of another log, then entries":  {[]step{log(2, 12, 2), snap(8, 4), log(9, 10, 5)}, entries(9, 10, 5, 10)},
		"of another log, with entries":  {[]step{log(2, 12, 2), both(8, 4, 9)}, entries(9, 9, 4, 10)},
		"of another log, and a further": {[]step{log(2, 12, 2), snap(8, 4), snap(10, 4)}, nil},
		"of another log, then its own":  {[]step{log(2, 12, 2), snap(8, 4), log(9, 11, 4), snap(10, 4)}, entries(11, 11, 4, 10)},
		"beyond the log":                {[]step{log(2, 5, 2), snap(8, 4)}, nil},
		"of its own":                    {[]step{log(2, 12, 2), snap(8, 2)}, entries(9, 12, 2, 10)},
		"of its own, twice":             {[]step{log(2, 12, 2), snap(8, 2), snap(10, 2)}, entries(11, 12, 2, 10)},
		"of its own, of a mended log":   {[]step{log(2, 12, 2), log(7, 12, 4), snap(8, 4)}, entries(9, 12, 4, 10)},
		"at the end":                    {[]step{log(2, 8, 2), snap(8, 2)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, _ := mustOpen(t, dir)
			mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
			for _, do := range c.steps {
				do(s)
			}
			mustClose(t, s)
			for range 2 { // what the first start leaves is read as it was
				state := reopen(t, dir)
				wantState(t, state, state.HardState, c.want, state.Snapshot)
			}
		})
	}
}

// TestSnapshotBeforeTheLog: the oldest remaining segment may name a snapshot whose
// entries were removed with earlier segments. Such a record replaces nothing.
func TestSnapshotBeforeTheLog(t *testing.T) {
	smallSegments(t, 8<<10)
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 39, 2, 1000), nil) // fills the first segment
	mustSave(t, s, nil, entries(40, 40, 2, 10), nil)
	mustSave(t, s, nil, entries(41, 60, 2, 10), nil)
	for _, index := range []uint64{30, 50, 55} {
		mustSave(t, s, nil, nil, snapshotAt(index, 2, "state"))
	}
	mustClose(t, s)
	segments, err := listSegments(filepath.Join(dir, "wal"))
	if err != nil || segments[0].first != 41 {
		t.Fatalf("the log begins with %v, %v: the test wants it to begin at entry 41", segments, err)
	}
	if got := reopen(t, dir).Entries; len(got) != 5 {
		t.Errorf("%d entries after the snapshot, want 5", len(got))
	}
}

// TestSnapshotThatIsOld: the member's own snapshot may reach the disk after a newer one
// of the leader.
func TestSnapshotThatIsOld(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(5, 0, 100), nil, snapshotAt(100, 4, "state"))
	mustSave(t, s, nil, nil, snapshotAt(50, 4, "old"))
	mustClose(t, s)
	wantState(t, reopen(t, dir), hard(5, 0, 100), nil, snapshotAt(100, 4, "state"))
}

// TestPurge: two snapshots stay, and the log from the older of them.
func TestPurge(t *testing.T) {
	smallSegments(t, 8<<10)
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	for i := uint64(2); i <= 200; i++ {
		mustSave(t, s, hard(2, 1, i), entries(i, i, 2, 1000), nil)
		if i%20 == 0 {
			mustSave(t, s, nil, nil, snapshotAt(i, 2, fmt.Sprint("state ", i)))
		}
	}
	mustSave(t, s, nil, entries(201, 205, 2, 10), nil)
	check := func() {
		t.Helper()
		if got := fileNames(t, dir, "snap"); len(got) != 2 || got[0] != (position{180, 2}).fileName() || got[1] != (position{200, 2}).fileName() {
			t.Errorf("snapshots %v, want those at 180 and 200", got)
		}
		segments, err := listSegments(filepath.Join(dir, "wal"))
		if err != nil || segments[0].first > 180 || segments[1].first <= 180 {
			t.Errorf("segments %v (%v), want the log from entry 180 and no more", segments, err)
		}
	}
	check()
	mustClose(t, s)
	wantState(t, reopen(t, dir), hard(2, 1, 200), entries(201, 205, 2, 10), snapshotAt(200, 2, "state 200"))
	check()
	// An operator may fall back on the older one.
	if err := os.Remove(filepath.Join(dir, "snap", position{180, 2}.fileName())); err != nil {
		t.Fatal(err)
	}
	reopen(t, dir)
}

func fileNames(t testing.TB, elem ...string) []string {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

func TestSaveIsRefused(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	if err := s.Save(nil, entries(1, 1, 1, 1), nil, true); err == nil || !strings.Contains(err.Error(), "need a hard state") {
		t.Errorf("entries first: %v", err)
	}
	mustClose(t, s)
	if err := s.Save(hard(1, 1, 1), nil, nil, true); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("save after close: %v", err)
	}
}

// TestLog: the loggers of etcd's packages end in ours.
func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := zapTo(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	log.Info("inner life")
	log.With().Warn("slow disk")
	log.Error("what is returned as well")
	if got := out.String(); strings.Contains(got, "inner") || strings.Contains(got, "returned") || !strings.Contains(got, `level=WARN msg="slow disk"`) {
		t.Errorf("logged %s", got)
	}
}

// BenchmarkSave measures one Save of n entries of 128 bytes, which is one fsync. It needs
// a real disk: set TMPDIR.
func BenchmarkSave(b *testing.B) {
	for _, n := range []uint64{1, 16, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _ := mustOpen(b, b.TempDir())
			mustSave(b, s, nil, nil, snapshotAt(1, 1, "boot"))
			next := uint64(2)
			for b.Loop() {
				batch := entries(next, next+n-1, 2, 128)
				next += n
				if err := s.Save(hard(2, 1, 1), batch, nil, true); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
			mustClose(b, s)
		})
	}
}

// The file of a snapshot is written while saves continue. It is valid once the log has
// its record.
func TestSnapshotWrittenAhead(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	boot, later := snapshotAt(1, 1, "boot"), snapshotAt(3, 2, "later")
	mustSave(t, s, nil, nil, boot)
	mustSave(t, s, hard(2, 1, 3), entries(2, 4, 2, 10), nil)
	if err := s.WriteSnapshot(later); err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, hard(2, 1, 4), entries(5, 5, 2, 10), nil)
	mustClose(t, s)
	state := reopen(t, dir)
	wantState(t, state, hard(2, 1, 4), entries(2, 5, 2, 10), boot)

	s, _ = mustOpen(t, dir)
	if err := s.WriteSnapshot(later); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "snap", positionOf(later).fileName())
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	mustSave(t, s, hard(2, 1, 5), entries(6, 6, 2, 10), nil)
	mustSave(t, s, nil, nil, later)
	if after, err := os.Stat(path); err != nil || after.ModTime() != before.ModTime() {
		t.Errorf("the save with the snapshot wrote its file again: %v", err)
	}
	mustClose(t, s)
	wantState(t, reopen(t, dir), hard(2, 1, 5), entries(4, 6, 2, 10), later)
}
