package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a full disk a server cannot even write down why it ended.
func TestDeathOnAFullDiskHasAReason(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/dev/full", filepath.Join(dir, "server-1.log")); err != nil {
		t.Fatal(err)
	}
	c, err := Start(Config{Binary: script(t, "echo why it ended; exit 3"), Dir: dir, Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	<-c.process(1).done
	if err := c.Died(); err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("the death of a server is reported as %v", err)
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
}

// What an earlier run said is no reason for the end of this one.
func TestLogTellsItsOwnRunOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("an old story\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log := NewLog(path)
	file, err := log.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, want := log.LastLine(), "nothing"; got != want {
		t.Errorf("a run that says nothing says %q, want %q", got, want)
	}
	if _, err := file.WriteString("first\nlast\n"); err != nil {
		t.Fatal(err)
	}
	if got, want := log.LastLine(), "last"; got != want {
		t.Errorf("the last line is %q, want %q", got, want)
	}
	if got, want := log.Said(), "\nfirst\nlast\n"; got != want {
		t.Errorf("the run said %q, want %q", got, want)
	}
}
