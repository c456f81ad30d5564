package store

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errLater = errors.New("ask later")

func TestJoinAsksUnderOneUID(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var first uint64
	for range 3 {
		_, err := Join(dir, func(uid uint64) (Joined, error) {
			if first == 0 {
				first = uid
			}
			if uid != first || uid == 0 {
				t.Errorf("it asks under the UID %x, before under %x", uid, first)
			}
			return Joined{}, errLater
		})
		if !errors.Is(err, errLater) {
			t.Fatal(err)
		}
	}
	answer := Joined{Identity: Identity{Cluster: 0xc0ffee, Server: 4}, Peers: map[uint64]string{1: "a:1", 12: "b:2"}}
	for range 2 { // it is asked once
		asked := 0
		told, err := Join(dir, func(uint64) (Joined, error) { asked++; return answer, nil })
		if err != nil || told.UID != first || told.Server != 4 || told.Cluster != 0xc0ffee || !maps.Equal(told.Peers, answer.Peers) {
			t.Fatalf("told %+v, %v", told, err)
		}
		if asked > 0 && answer.Server != 4 {
			t.Error("it was asked again")
		}
		answer.Server = 5
	}
	told, err := Join(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The directory takes over the UID, and keeps it.
	for range 2 {
		s, state, err := Open(dir, told.Identity, quiet)
		if err != nil || state.UID != first || !state.Fresh {
			t.Fatalf("opened with %+v, %v", state, err)
		}
		mustClose(t, s)
	}
	if _, err := Join(dir, nil); err != nil {
		t.Errorf("a directory in which a server was: %v", err)
	}
}

func TestJoinIsRefused(t *testing.T) {
	never := func(uint64) (Joined, error) { t.Error("it asks"); return Joined{}, nil }
	refused := func(dir, want string) {
		t.Helper()
		if _, err := Join(dir, never); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line that says %q", err, want)
		}
	}
	founder := t.TempDir()
	s, _ := mustOpen(t, founder)
	refused(founder, "is in use")
	mustClose(t, s)
	refused(founder, "did not join by --join")

	foreign := t.TempDir()
	writeFile(t, filepath.Join(foreign, "letter.txt"), nil)
	refused(foreign, "not empty")

	unclear := t.TempDir() // a file that cannot be looked at may be there
	if err := os.Symlink(metaName, filepath.Join(unclear, metaName)); err != nil {
		t.Fatal(err)
	}
	refused(unclear, "too many levels of symbolic links")
	if entries, err := os.ReadDir(unclear); err != nil || len(entries) != 1 {
		t.Errorf("it wrote into a directory that it cannot read: %v, %v", entries, err)
	}

	for text, want := range map[string]string{
		`{"format":1,`:                                "is corrupt",
		`{"format":9,"uid":"01"}`:                     "format version 9",
		`{"format":1}`:                                "edited",
		`{"format":1,"uid":"01","server":4}`:          "edited",
		`{"format":1,"uid":"01","peers":{"x":"a:1"}}`: "edited",
	} {
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, joinName), []byte(text))
		refused(dir, want)
	}
}

// A member that another program wrote under the UID of this one is not accepted as this
// one.
func TestJoinedDirectoryHasItsUID(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustClose(t, s)
	id := testID
	id.UID = 77
	if _, _, err := Open(dir, id, quiet); err == nil || !strings.Contains(err.Error(), "uid") {
		t.Errorf("a directory with another UID: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, metaName)); err != nil {
		t.Error(err)
	}
}
