package backup

import (
	"fmt"
	"io"
	"os"

	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/service/store"
)

// Write writes a file at path, like outfile.Write.
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

// Restore puts the state of a file into a data directory, which must be empty or new, for a
// server that founds a cluster. New fences are larger than all in the file, and larger than
// above, a fence that is known to have been given (0 if none is). The access rules of the backup
// are kept, or left out if withoutAccess is set. It returns the resulting state.
func Restore(path, dir string, above uint64, withoutAccess bool) (*Backup, error) {
	b, err := Read(path)
	if err != nil {
		return nil, err
	}
	if withoutAccess {
		b.Registry.ForgetRules()
	}
	if err := b.refound(above); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := store.PutSeed(dir, Encode(b.Header, b.Registry.Encode())); err != nil {
		return nil, err
	}
	return b, nil
}
