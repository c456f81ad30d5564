package store

import (
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func init() { children["limit"] = writeToTheLimit }

// writeToTheLimit saves until the kernel refuses, and then once more.
func writeToTheLimit(dir string, say func(string, ...any)) error {
	signal.Ignore(syscall.SIGXFSZ)
	s, _, err := Open(dir, testID, quiet)
	if err != nil {
		return err
	}
	limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	saveUntilFailure(s, say)
	return nil
}

// saveUntilFailure prints how far it got, and then three errors: of the save that failed,
// of the next save, and of Close.
func saveUntilFailure(s *Store, say func(string, ...any)) {
	for i := uint64(2); ; i++ {
		if err := s.Save(hard(2, 1, i-1), entries(i, i, 2, 1000), nil, true); err != nil {
			say("%d", i-1)
			say("%v", err)
			say("%v", s.Save(nil, entries(i, i, 2, 1), nil, true))
			say("%v", s.Close())
			return
		}
	}
}

func checkFailure(t *testing.T, dir string, lines []string, want string) (acknowledged uint64) {
	t.Helper()
	if _, err := fmt.Sscan(lines[0], &acknowledged); err != nil || acknowledged < 10 {
		t.Fatalf("acknowledged %q (%v)", lines[0], err)
	}
	if !strings.Contains(lines[1], want) || !strings.Contains(lines[1], "the server must stop") || !strings.Contains(lines[1], dir) {
		t.Errorf("the error is %q, want it to say %q", lines[1], want)
	}
	if lines[2] != lines[1] || lines[3] != lines[1] {
		t.Errorf("later errors differ from the first:\n%q", lines[1:])
	}
	return acknowledged
}

func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustClose(t, s)
	writer := startChild(t, "limit", dir)
	var lines []string
	for writer.lines.Scan() {
		lines = append(lines, writer.lines.Text())
	}
	if err := writer.Wait(); err != nil || len(lines) != 4 {
		t.Fatalf("the child said %q and ended with %v", lines, err)
	}
	acknowledged := checkFailure(t, dir, lines, "file too large")
	if state := reopen(t, dir); uint64(len(state.Entries))+1 < acknowledged {
		t.Errorf("the log ends at entry %d, acknowledged was %d", len(state.Entries)+1, acknowledged)
	}
}

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a small file system is not permitted here (%v); TestFileSizeLimit covers the same path", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	smallSegments(t, 128<<10)
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	var lines []string
	saveUntilFailure(s, func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) })
	checkFailure(t, dir, lines, "no space left on device")
	if segments, err := listSegments(filepath.Join(dir, "wal")); err != nil || len(segments) < 2 {
		t.Errorf("segments %v (%v), want the disk to fill up at a later one", segments, err)
	}
}
