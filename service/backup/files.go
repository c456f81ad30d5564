package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/conclave-io/conclave/internal/outfile"
)

// Write puts a file at path, as outfile.Write does.
func Write(path string, file []byte) error {
	return outfile.Write(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(file)
		return err
	})
}

// Read reads a file.
func Read(path string) (*Backup, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, MaxBytes))
	if err != nil {
		return nil, err
	}
	b, err := Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// foundingFile is where a data directory has the state from which its server is to
// found a cluster. The store leaves it alone.
func foundingFile(dir string) string { return filepath.Join(dir, "snap", "founding") }

// Restore puts the state of a file into a data directory, which must be empty or
// new, for a server that founds a cluster. Fences begin above all in the file, and
// above one that is known to have been given (0 if there is none). It returns the
// state as it then is.
func Restore(path, dir string, above uint64) (*Backup, error) {
	b, err := Read(path)
	if err != nil {
		return nil, err
	}
	if err := b.refound(above); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkEmpty(dir); err != nil {
		return nil, err
	}
	snaps := filepath.Dir(foundingFile(dir))
	if err := os.MkdirAll(snaps, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := Write(foundingFile(dir), Encode(b.Header, b.Registry.Encode())); err != nil {
		return nil, fmt.Errorf("write to data directory: %w", err)
	}
	return b, errors.Join(outfile.SyncDirectory(dir), outfile.SyncDirectory(filepath.Dir(filepath.Clean(dir))))
}

// checkEmpty refuses a directory that has anything in it, but for what a file
// system of its own has.
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

// Founding returns what Restore put into a data directory, or nil.
func Founding(dir string) (*Backup, error) {
	b, err := Read(foundingFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// Restored reports whether Restore put a state into a data directory.
func Restored(dir string) (bool, error) {
	_, err := os.Stat(foundingFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Founded removes it. Once the server has saved a state of its own nobody reads
// it any more.
func Founded(dir string) error { return os.Remove(foundingFile(dir)) }
