// Package golden keeps what servers write at a level: files that the release which
// brought the level wrote, and nobody changes afterwards. Tests of each later release
// read them, and write the same at that level.
//
//	make golden LEVEL=1          writes those that are missing
//	make golden LEVEL=1 FORCE=1  writes all again: only before the level is released
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

var (
	write = flag.Uint("golden-level", 0, "write the golden files of this level that are missing")
	force = flag.Bool("golden-force", false, "write also those that are there")
)

// Dir returns the folder of a level, in that of the package under test.
func Dir(level uint32) string { return filepath.Join("testdata", "levels", fmt.Sprint(level)) }

// Writes reports whether a file, or a folder of them, is to be written.
func Writes(t testing.TB, level uint32, name string) bool {
	t.Helper()
	if *write != uint(level) {
		return false
	}
	if err := os.MkdirAll(Dir(level), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(filepath.Join(Dir(level), name))
	return *force || os.IsNotExist(err)
}

// Same returns a golden file. It fails if that is not what this release makes.
func Same(t testing.TB, level uint32, name string, made []byte) []byte {
	t.Helper()
	path := filepath.Join(Dir(level), name)
	if Writes(t, level, name) {
		if err := os.WriteFile(path, made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, made) {
		t.Errorf("%s: %d bytes: this release writes others at level %d: %d bytes\n%x\n%x", path, len(kept), level, len(made), kept, made)
	}
	return kept
}
