package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// seedPath returns the path of the seed in a data directory: the state from which its server
// should found a cluster. This package does not interpret its content.
func seedPath(dir string) string { return filepath.Join(dir, "snap", "founding") }

// PutSeed creates a data directory with a seed. The directory must be empty or new. The
// seed is durable when PutSeed returns.
func PutSeed(dir string, seed []byte) error {
	if err := checkEmpty(dir); err != nil {
		return err
	}
	path := seedPath(dir)
	err := makeDirectory(dir)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = syncDirectory(dir)
	}
	if err != nil {
		return fmt.Errorf("store: create data directory: %w", err)
	}
	return replaceExactly(path, seed)
}

// checkEmpty refuses a directory that contains anything except what the root of a file system
// has.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return fmt.Errorf("data directory %s is not empty: it has %q; name an empty or a new directory", dir, e.Name())
		}
	}
	return nil
}

// Seed returns the seed of the directory, or nil.
func (s *Store) Seed() ([]byte, error) {
	seed, err := os.ReadFile(seedPath(s.dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("store: %w", err)
	}
	return seed, nil
}

// DropSeed removes the seed. Once the server has saved its own state, nobody reads the seed.
func (s *Store) DropSeed() error {
	if err := os.Remove(seedPath(s.dir)); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}
