package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func copyDir(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

func lastSegment(t testing.TB, dir string) string {
	t.Helper()
	segments, err := listSegments(filepath.Join(dir, "wal"))
	if err != nil {
		t.Fatal(err)
	}
	return segments[len(segments)-1].path
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// written is the length of a segment without the space allocated ahead.
func written(b []byte) int { return (len(bytes.TrimRight(b, "\x00")) + 7) / 8 * 8 }

// torn is a directory with a last save that a crash may have interrupted.
type torn struct {
	dir      string
	old, new []byte // the last segment before and after the save
	before   *State
	after    *State
	zeros    bool // an entry of the last save holds a sector of zeros
}

// lastSaves are the kinds of save that can be interrupted.
var lastSaves = map[string]struct {
	hs       *raftpb.HardState
	entries  []*raftpb.Entry
	snapshot *raftpb.Snapshot
}{
	"vote":     {hs: hard(3, 2, 4)},
	"entry":    {entries: entries(8, 8, 2, 100)},
	"entries":  {hs: hard(3, 0, 6), entries: entries(6, 20, 3, 300)},
	"zeros":    {entries: []*raftpb.Entry{{Index: new(uint64(8)), Term: new(uint64(2)), Data: make([]byte, 3000)}}},
	"snapshot": {hs: hard(4, 0, 50), entries: entries(51, 53, 4, 40), snapshot: snapshotAt(50, 4, "state")},
}

func interrupted(t *testing.T, kind string) *torn {
	smallSegments(t, 64<<10)
	x := &torn{dir: t.TempDir(), zeros: kind == "zeros"}
	s, _ := mustOpen(t, x.dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 5, 2, 200), nil)
	mustSave(t, s, hard(2, 1, 4), entries(6, 7, 2, 20), nil)
	path := lastSegment(t, x.dir)
	x.old = readFile(t, path)
	last := lastSaves[kind]
	mustSave(t, s, last.hs, last.entries, last.snapshot)
	mustClose(t, s)
	x.new = readFile(t, path)
	x.after = reopen(t, x.dir)
	// A crash during the last save leaves it as it was before.
	forgetReached(t, x.dir)
	writeFile(t, path, x.old)
	x.before = reopen(t, copyDir(t, x.dir))
	writeFile(t, path, x.new)
	return x
}

// forgetReached makes a directory look as if the server had crashed before it recorded
// its last saves in the file reached.
func forgetReached(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, reachedName)); err != nil {
		t.Fatal(err)
	}
}

// check opens the directory with another last segment, and says whether the
// interrupted save is there.
func (x *torn) check(t *testing.T, what string, at int, segment []byte) (complete bool) {
	t.Helper()
	writeFile(t, lastSegment(t, x.dir), segment)
	dir := x.dir
	if x.after.Snapshot != nil {
		dir = copyDir(t, x.dir) // what is opened may remove the snapshot
	}
	var log bytes.Buffer
	s, state, err := Open(dir, testID, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatalf("%s at %d: %v", what, at, err)
	}
	want := x.before
	if len(state.Entries) == len(x.after.Entries) && state.HardState.String() == x.after.HardState.String() {
		want, complete = x.after, true
	}
	wantState(t, state, want.HardState, want.Entries, want.Snapshot)
	if lines := strings.Count(log.String(), "unfinished save"); lines > 1 || complete && lines > 0 {
		t.Errorf("%s at %d: %d lines about a repair:\n%s", what, at, lines, log.String())
	}
	if at%8 != 0 {
		mustClose(t, s)
		return complete
	}
	// What is appended after the repair is found again.
	mustSave(t, s, hard(9, 1, want.HardState.GetCommit()), nil, nil)
	mustClose(t, s)
	if again := reopen(t, dir); again.HardState.GetTerm() != 9 || len(again.Entries) != len(want.Entries) {
		t.Errorf("%s at %d: after another save the directory holds %+v", what, at, again)
	}
	return complete
}

// TestTruncatedTail cuts the log at every byte of the last save. No crash does that,
// because a segment has its full length before anything is written to it. So a cut that
// is visible in the log is refused. If the cut is at the end of a save, the file reached
// shows it.
func TestTruncatedTail(t *testing.T) {
	for _, kind := range []string{"vote", "entry", "snapshot"} {
		t.Run(kind, func(t *testing.T) {
			x := interrupted(t, kind)
			for at := written(x.old); at <= written(x.new); at++ {
				if whole := at == written(x.new); whole || at == written(x.old) {
					if complete := x.check(t, "cut", at, x.new[:at]); complete != whole {
						t.Errorf("cut at %d of %d to %d: complete is %v", at, written(x.old), written(x.new), complete)
					}
					continue
				}
				cut := bytes.TrimRight(x.new[:at], "\x00")
				if len(cut) <= written(x.old) { // it ends behind a save, but for the first bytes of a length
					continue
				}
				writeFile(t, lastSegment(t, x.dir), x.new[:at])
				var corrupt *CorruptError
				_, _, err := Open(x.dir, testID, quiet)
				want := fmt.Sprintf("has %d bytes and ends within a save, but was made with %d: it was cut after it was written", at, 64<<10)
				if !errors.As(err, &corrupt) || !strings.HasSuffix(err.Error(), want) {
					t.Fatalf("cut at %d of %d to %d: %v, want a CorruptError that says %q", at, written(x.old), written(x.new), err, want)
				}
			}
		})
	}
}

// TestTornSectors lets each sector of the last save arrive or not.
func TestTornSectors(t *testing.T) {
	for kind := range lastSaves {
		t.Run(kind, func(t *testing.T) {
			x := interrupted(t, kind)
			chance := rand.New(rand.NewPCG(1, 1))
			first, last := written(x.old)/sectorBytes, (written(x.new)-1)/sectorBytes
			for round := range 24 {
				segment, arrived := bytes.Clone(x.old), 0
				for sector := first; sector <= last; sector++ {
					if chance.IntN(round%4+2) > 0 {
						copy(segment[sector*sectorBytes:][:sectorBytes], x.new[sector*sectorBytes:])
						arrived++
					}
				}
				complete := x.check(t, "torn", round, segment)
				if same := bytes.Equal(segment, x.new); complete != same {
					t.Errorf("%d of %d sectors arrived: complete is %v", arrived, last-first+1, complete)
				}
			}
		})
	}
}

// TestTornLength: the length of a record may be the last of its sector. A crash that
// leaves the record but not its length must not be reported as damage.
func TestTornLength(t *testing.T) {
	smallSegments(t, 64<<10)
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	at, last := 0, uint64(1)
	for (at+frameHead)%sectorBytes != 0 {
		last++
		mustSave(t, s, hard(2, 1, 1), entries(last, last, 2, int(last%9)), nil)
		at = written(readFile(t, lastSegment(t, dir)))
	}
	mustSave(t, s, hard(3, 2, 1), nil, nil)
	mustClose(t, s)
	path := lastSegment(t, dir)
	b := readFile(t, path)
	clear(b[at:][:frameHead])
	writeFile(t, path, b)
	forgetReached(t, dir)
	if state := reopen(t, dir); state.HardState.GetTerm() != 2 || len(state.Entries) != int(last-1) {
		t.Errorf("the directory holds %+v", state)
	}
}

// TestFlippedBit flips bits of every byte of the log, one at a time, and sets every byte
// to zero. All of this must be refused, and not be taken for a torn tail, because
// everything was acknowledged.
func TestFlippedBit(t *testing.T) {
	for kind := range lastSaves {
		t.Run(kind, func(t *testing.T) {
			x := interrupted(t, kind)
			segments := []segment{{path: lastSegment(t, x.dir)}}
			from, bits := written(x.old), 1
			if kind == "vote" { // one kind is enough for what all have in common
				from, bits = 0, 8
			}
			image := x.new[:written(x.new)+2*sectorBytes]
			for at := from; at < written(x.new); at++ {
				for bit := range bits {
					x.refused(t, segments, image, at, image[at]^1<<((at+bit)%8))
				}
				if image[at] != 0 {
					x.refused(t, segments, image, at, 0)
				}
			}
		})
	}
}

// refused checks that the log is refused when one byte is another.
func (x *torn) refused(t *testing.T, segments []segment, image []byte, at int, now byte) {
	t.Helper()
	b := bytes.Clone(image)
	b[at] = now
	found, err := scanSegments(segments, nil, func(string) ([]byte, error) { return b, nil })
	if err == nil && found.tail != nil && found.tail.at == int64(written(x.old)) && at >= written(x.old) && x.zeros {
		return // see the package comment: the one case that cannot be told from a torn tail
	}
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("byte %d of %d (last save from %d) changed from %#x to %#x: %+v, %v", at, len(b), written(x.old), image[at], now, found, err)
	}
	// The first record states the checksum from which the second is reckoned.
	if corrupt.Offset > int64(max(at, 2*frameHead)) || !strings.Contains(err.Error(), corrupt.Path) {
		t.Fatalf("byte %d changed: the error names another place: %v", at, err)
	}
}

// TestLostSector: a sector that reads as zeros, with a complete save behind
// it, was lost after it had been acknowledged.
func TestLostSector(t *testing.T) {
	x := interrupted(t, "entries")
	for sector := range written(x.old) / sectorBytes {
		b := bytes.Clone(x.new)
		clear(b[sector*sectorBytes:][:sectorBytes])
		writeFile(t, lastSegment(t, x.dir), b)
		var corrupt *CorruptError
		if _, _, err := Open(x.dir, testID, quiet); !errors.As(err, &corrupt) {
			t.Errorf("sector %d lost: %v, want a CorruptError", sector, err)
		}
	}
}

// manySegments fills a directory with a log of several segments.
func manySegments(t *testing.T) (dir string, segments []segment) {
	smallSegments(t, 4<<10)
	dir = t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	for i := uint64(2); i < 40; i++ {
		mustSave(t, s, hard(2, 1, i), entries(i, i, 2, 600), nil)
	}
	mustClose(t, s)
	segments, err := listSegments(filepath.Join(dir, "wal"))
	if err != nil || len(segments) < 4 {
		t.Fatalf("%d segments (%v), want several", len(segments), err)
	}
	return dir, segments
}

func TestSegments(t *testing.T) {
	dir, segments := manySegments(t)
	want := reopen(t, dir)
	if len(want.Entries) != 38 {
		t.Fatalf("%d entries, want 38", len(want.Entries))
	}
	for i, seg := range segments[:len(segments)-1] {
		lost := copyDir(t, dir)
		if err := os.Remove(filepath.Join(lost, "wal", filepath.Base(seg.path))); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(lost, testID, quiet); err == nil || !strings.Contains(err.Error(), "missing") {
			t.Errorf("segment %d deleted: %v", i, err)
		}
		cut := copyDir(t, dir)
		path := filepath.Join(cut, "wal", filepath.Base(seg.path))
		if err := os.Truncate(path, int64(len(readFile(t, path))-100)); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if _, _, err := Open(cut, testID, quiet); !errors.As(err, &corrupt) || corrupt.Path != path {
			t.Errorf("segment %d cut short: %v, want a CorruptError that names it", i, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "wal")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, testID, quiet); err == nil {
		t.Error("the whole log deleted: opened all the same")
	}
}

// TestSpareSegmentIsNotTrusted: a crash may leave any bytes in the segments that were
// allocated in advance, and the next segment in use is one of these.
func TestSpareSegmentIsNotTrusted(t *testing.T) {
	dir, segments := manySegments(t)
	for _, name := range []string{"0.tmp", "1.tmp"} {
		writeFile(t, filepath.Join(dir, "wal", name), bytes.Repeat([]byte("junk"), 4<<10))
	}
	s, state := mustOpen(t, dir)
	next := uint64(40)
	for ; lastSegment(t, dir) == segments[len(segments)-1].path; next++ {
		mustSave(t, s, nil, entries(next, next, 2, 600), nil)
	}
	mustClose(t, s)
	if again := reopen(t, dir); len(again.Entries) != len(state.Entries)+int(next-40) {
		t.Errorf("%d entries, want %d", len(again.Entries), len(state.Entries)+int(next-40))
	}
}

func TestDamagedSnapshot(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	whole := snapshotAt(9, 2, strings.Repeat("state", 50))
	mustSave(t, s, hard(2, 1, 9), nil, whole)
	mustClose(t, s)
	path := filepath.Join(dir, "snap", position{9, 2}.fileName())
	good := readFile(t, path)
	for at := range good {
		b := bytes.Clone(good)
		b[at] ^= 1 << (at % 8)
		writeFile(t, path, b)
		s := &Store{dir: dir}
		snapshot, err := s.readSnapshot(position{9, 2})
		if err == nil && proto.Equal(snapshot, whole) {
			continue // a bit that the file format ignores
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Path != path {
			t.Fatalf("byte %d changed: %v, want a CorruptError that names %s", at, err, path)
		}
	}
	good[len(good)/2] ^= 1
	writeFile(t, path, good)
	var corrupt *CorruptError
	if _, _, err := Open(dir, testID, quiet); !errors.As(err, &corrupt) {
		t.Errorf("damaged snapshot: %v, want a CorruptError", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, testID, quiet); err == nil || !strings.Contains(err.Error(), "missing") || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("snapshot deleted: %v", err)
	}
}
