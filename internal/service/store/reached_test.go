package store

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
)

// single is the directory of a cluster of one, which commits what it saves at once.
func single(t *testing.T) (dir string, saves []int) {
	smallSegments(t, 64<<10)
	dir = t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 2, 2, 30), nil)
	for i := uint64(3); i < 9; i++ {
		mustSave(t, s, hard(2, 1, i-1), entries(i, i, 2, int(20*i)), nil)
		saves = append(saves, written(readFile(t, lastSegment(t, dir))))
	}
	if err := s.Save(hard(2, 1, 8), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	return dir, saves
}

// TestLostEnd removes the end of a log at every byte of its last saves, by truncating the
// file and by writing zeros. The directory is refused, or has everything that it had
// acknowledged. A shorter log would grant the same fences again.
func TestLostEnd(t *testing.T) {
	dir, saves := single(t)
	path := lastSegment(t, dir)
	whole, recorded := readFile(t, path), readFile(t, filepath.Join(dir, reachedName))
	want := reopen(t, copyDir(t, dir))
	refused, kept := 0, 0
	for at := saves[0]; at <= written(whole); at++ {
		zeroed := bytes.Clone(whole)
		clear(zeroed[at:])
		for what, b := range map[string][]byte{"cut": whole[:at], "zeros": zeroed} {
			writeFile(t, path, b)
			writeFile(t, filepath.Join(dir, reachedName), recorded)
			s, state, err := Open(dir, testID, quiet)
			var corrupt *CorruptError
			if errors.As(err, &corrupt) {
				refused++
				continue
			}
			if err != nil {
				t.Fatalf("%s at %d: %v, want a CorruptError", what, at, err)
			}
			kept++
			mustClose(t, s)
			// The commit index alone may be lost: raft finds it again by itself.
			state.HardState.Commit = want.HardState.Commit
			if diff := cmp.Diff(want, state, protocmp.Transform()); diff != "" {
				t.Fatalf("%s at %d of %d (the last save begins at %d): opened with less (-want +got):\n%s", what, at, written(whole), saves[len(saves)-2], diff)
			}
		}
	}
	if t.Logf("%d refused, %d whole", refused, kept); refused == 0 || kept == 0 {
		t.Error("want both outcomes")
	}
}

// TestLostVote: a vote moves no commit index, and must not be forgotten either.
func TestLostVote(t *testing.T) {
	dir, saves := single(t)
	s, _ := mustOpen(t, dir)
	mustSave(t, s, hard(3, 2, 8), nil, nil)
	mustClose(t, s)
	b := readFile(t, lastSegment(t, dir))
	clear(b[saves[len(saves)-1]:])
	writeFile(t, lastSegment(t, dir), b)
	var corrupt *CorruptError
	if _, _, err := Open(dir, testID, quiet); !errors.As(err, &corrupt) {
		t.Errorf("got %v, want a CorruptError", err)
	}
}

// TestReachedWhileOpen: the file is updated while the server runs, so that a killed
// server is covered too.
func TestReachedWhileOpen(t *testing.T) {
	before := reachedEvery
	reachedEvery = time.Millisecond
	t.Cleanup(func() { reachedEvery = before })
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	for i := uint64(2); i < 6; i++ {
		mustSave(t, s, hard(2, 1, i-1), entries(i, i, 2, 10), nil)
		for began := time.Now(); ; runtime.Gosched() {
			r, err := readReached(dir)
			if err != nil {
				t.Fatal(err)
			}
			if r.at == (mark{i - 1, 2}) {
				break
			}
			if time.Since(began) > 10*time.Second {
				t.Fatalf("the file says %v, want commit index %d in term 2", r.at, i-1)
			}
		}
	}
	mustClose(t, s)
}

// TestReachedIsCommitted: entries that are not committed may be replaced by fewer. The log is
// then shorter than it was, and nothing is missing.
func TestReachedIsCommitted(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustSave(t, s, hard(2, 1, 1), entries(2, 5, 2, 10), nil)
	mustClose(t, s)
	s, _ = mustOpen(t, dir)
	mustSave(t, s, hard(3, 2, 1), entries(2, 2, 3, 10), nil)
	mustClose(t, s)
	if state := reopen(t, dir); len(state.Entries) != 1 || state.Entries[0].GetTerm() != 3 {
		t.Errorf("the directory holds %v, want entry 2 of term 3", state.Entries)
	}
}

// TestSegmentIsMadeWholeAgain: a segment that a repair has shortened is as long as
// others before anything is appended to it.
func TestSegmentIsMadeWholeAgain(t *testing.T) {
	dir, _ := single(t)
	path := lastSegment(t, dir)
	b := readFile(t, path)
	writeFile(t, path, b[:written(b)])
	s, _ := mustOpen(t, dir)
	if info, err := os.Stat(path); err != nil || info.Size() != 64<<10 {
		t.Errorf("the segment has %d bytes (%v), want %d", info.Size(), err, 64<<10)
	}
	mustClose(t, s)
}

// TestReachedSlots damages the file at random: one slot is enough, and without any the
// directory is refused. A directory without the file, or with an empty one, opens.
func TestReachedSlots(t *testing.T) {
	dir, _ := single(t)
	path := filepath.Join(dir, reachedName)
	s, _ := mustOpen(t, dir)
	mustSave(t, s, hard(3, 1, 8), entries(9, 9, 3, 10), nil)
	if err := s.Save(hard(3, 1, 9), nil, nil, false); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	good := readFile(t, path)
	newest := mark{9, 3}
	chance := rand.New(rand.NewPCG(1, 2))
	for slot := range 2 {
		b := bytes.Clone(good)
		b[slot*sectorBytes+chance.IntN(slotBytes)] ^= 1 << chance.IntN(8)
		writeFile(t, path, b)
		r, err := readReached(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.at != newest && r.at != (mark{8, 2}) {
			t.Errorf("slot %d damaged: the file says %v", slot, r.at)
		}
		b[(1-slot)*sectorBytes+chance.IntN(slotBytes)] ^= 1 << chance.IntN(8)
		writeFile(t, path, b)
		var corrupt *CorruptError
		if _, _, err := Open(dir, testID, quiet); !errors.As(err, &corrupt) || corrupt.Path != path {
			t.Errorf("both slots damaged: %v, want a CorruptError that names %s", err, path)
		}
	}
	writeFile(t, path, nil)
	reopen(t, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	reopen(t, dir)
	if r, err := readReached(dir); err != nil || r.at != newest {
		t.Errorf("made again, the file says %v (%v), want %v", r.at, err, newest)
	}
}
