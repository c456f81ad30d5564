package backup

import (
	"fmt"
	"io"
	"os"

	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/service/store"
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

// Restore puts the state of a file into a data directory, which must be empty or
// new, for a server that founds a cluster. Fences begin above all in the file, and
// above one that is known to have been given (0 if there is none). The rules of access of
// the backup hold again, or are left out. It returns the state as it then is.
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
