// Package mutation builds programs with a deliberate mistake, to check that tests find it. The
// mistake is in no source file: it is in a copy, and the compiler is told to use the copy.
package mutation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Edit replaces a text, which must stand in the file exactly once.
type Edit struct{ File, Old, New string }

// Overlay writes the files of the repository at root, with the edits, into a folder, and
// returns the file that `go build -overlay` takes.
func Overlay[E ~struct{ File, Old, New string }](root, folder, name string, edits []E) (string, error) {
	replace := make(map[string]string)
	for i, edit := range edits {
		e := Edit(edit)
		path := filepath.Join(root, e.File)
		from := path
		if copied, again := replace[path]; again {
			from = copied
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return "", fmt.Errorf("mutant %s: %w", name, err)
		}
		if n := bytes.Count(text, []byte(e.Old)); n != 1 {
			return "", fmt.Errorf("mutant %s: %q occurs %d times in %s, expected once: update the mutant", name, e.Old, n, e.File)
		}
		copied := filepath.Join(folder, fmt.Sprintf("%s-%d.go", name, i))
		if err := os.WriteFile(copied, bytes.Replace(text, []byte(e.Old), []byte(e.New), 1), 0o600); err != nil {
			return "", fmt.Errorf("mutant %s: %w", name, err)
		}
		replace[path] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", name, err)
	}
	file := filepath.Join(folder, name+".json")
	return file, os.WriteFile(file, list, 0o600)
}
