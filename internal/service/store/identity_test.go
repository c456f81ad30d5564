package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustClose(t, s)

	var cluster *ClusterError
	if _, _, err := Open(dir, Identity{Cluster: 0xbad, Server: 2}, quiet); !errors.As(err, &cluster) || !strings.Contains(err.Error(), "belongs to cluster 0000000000c0ffee, not to 0000000000000bad") {
		t.Errorf("another cluster: %v", err)
	}
	var server *ServerError
	if _, _, err := Open(dir, Identity{Cluster: 0xc0ffee, Server: 3}, quiet); !errors.As(err, &server) || !strings.Contains(err.Error(), "belongs to server 2, not to server 3") {
		t.Errorf("another server: %v", err)
	}
	reopen(t, dir) // neither attempt has left a lock behind

	path := filepath.Join(dir, metaName)
	good := string(readFile(t, path))
	for _, c := range []struct{ from, to, want string }{
		{`"format":1`, `"format":7`, "has format version 7; this program reads version 1"},
		{`"server":2`, `"server":02`, "is corrupt at byte"},
		{`c0ffee`, `c0fffe`, "belongs to cluster 0000000000c0fffe"},
		{`"uid"`, `"uib"`, "edited"},
		{`}`, ``, "is corrupt at byte"},
	} {
		writeFile(t, path, []byte(strings.Replace(good, c.from, c.to, 1)))
		if _, _, err := Open(dir, testID, quiet); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s became %s: %v, want one line that says %q", c.from, c.to, err, c.want)
		}
	}
	writeFile(t, path, []byte(good))
	reopen(t, dir)
}

// TestNewerLog: a log of a later format is not guessed at.
func TestNewerLog(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	before := stamp
	stamp = append(stamp[:len(stamp)-1:len(stamp)-1], 9)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	stamp = before
	mustClose(t, s)
	var format *FormatError
	if _, _, err := Open(dir, testID, quiet); !errors.As(err, &format) || format.Have != 9 {
		t.Errorf("got %v, want a FormatError about version 9", err)
	}
}

// TestLogOfAnotherDirectory: the log is bound to the meta file beside it.
func TestLogOfAnotherDirectory(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		s, _ := mustOpen(t, dir)
		mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
		mustClose(t, s)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(b, "wal")), os.Rename(filepath.Join(a, "wal"), filepath.Join(b, "wal"))); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, _, err := Open(b, testID, quiet); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "another data directory") {
		t.Errorf("got %v", err)
	}
}

// TestUnfinishedDirectory: an interrupted creation of a directory is completed. A
// directory that was used and lost its meta file is not overwritten.
func TestUnfinishedDirectory(t *testing.T) {
	dir := t.TempDir()
	s, first := mustOpen(t, dir)
	mustClose(t, s)
	path := filepath.Join(dir, metaName)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s, second := mustOpen(t, dir)
	if !second.Fresh || second.UID == first.UID {
		t.Errorf("created again as %+v, first as %+v", second, first)
	}
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustClose(t, s)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, testID, quiet); err == nil || !strings.Contains(err.Error(), "has been used") {
		t.Errorf("the meta file is gone from a directory that was used: %v", err)
	}
}

// TestForeignDirectory: a mistyped --data must not scatter files into a directory that
// holds other things.
func TestForeignDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := Open(dir, testID, quiet)
	if err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Fatalf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Fatalf("%d files, %v", len(left), err)
	}
	if err := os.Rename(filepath.Join(dir, "thesis.tex"), filepath.Join(dir, "lost+found")); err != nil {
		t.Fatal(err)
	}
	s, _ := mustOpen(t, dir)
	mustClose(t, s)
}

func TestDirectoryCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, file, nil)
	if _, _, err := Open(filepath.Join(file, "data"), testID, quiet); err == nil || !strings.Contains(err.Error(), "create data directory") {
		t.Errorf("got %v", err)
	}
}
