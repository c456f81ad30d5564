package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSeedIsKeptUntilItIsDropped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "data")
	if err := PutSeed(dir, []byte("state")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, state := mustOpen(t, dir)
		seed, err := s.Seed()
		if err != nil || !state.Seeded || !state.Fresh || string(seed) != "state" {
			t.Errorf("the directory holds %+v and the seed %q (%v)", state, seed, err)
		}
		mustClose(t, s)
	}
	s, _ := mustOpen(t, dir)
	if err := s.DropSeed(); err != nil {
		t.Fatal(err)
	}
	if seed, err := s.Seed(); seed != nil || err != nil {
		t.Errorf("a seed that was dropped is %q (%v)", seed, err)
	}
	mustClose(t, s)
	s, state := mustOpen(t, dir)
	mustClose(t, s)
	if state.Seeded {
		t.Error("a seed that was dropped is back")
	}
}

// TestUnreadableSeedIsNotAbsent: a restored server must not take itself for a new one.
func TestUnreadableSeedIsNotAbsent(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustClose(t, s)
	path := seedPath(dir)
	if err := os.Symlink(path, path); err != nil { // Stat fails for good
		t.Skip(err)
	}
	if s, _, err := Open(dir, testID, quiet); err == nil {
		mustClose(t, s)
		t.Error("a seed that cannot be looked at counts as none")
	}
}
