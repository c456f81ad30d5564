package store

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// children are the programs that the test binary runs as a child of a test. Each works on
// a directory and reports on stdout, line by line.
var children = map[string]func(dir string, say func(format string, args ...any)) error{
	"hold":  holdDirectory,
	"write": writeForEver,
	"save":  saveScript,
}

const childEnv = "CONCLAVE_STORE_TEST_CHILD"

func runChild() bool {
	role, dir, ok := strings.Cut(os.Getenv(childEnv), ":")
	if !ok {
		return false
	}
	err := children[role](dir, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

// child is a running child process.
type child struct {
	*exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

func startChild(t *testing.T, role, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role+":"+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // the test has failed before
			_ = cmd.Wait()
		}
	})
	return &child{cmd, stdin, bufio.NewScanner(stdout)}
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child said nothing more: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// holdDirectory keeps the directory open until stdin ends.
func holdDirectory(dir string, say func(string, ...any)) error {
	s, _, err := Open(dir, testID, quiet)
	if err != nil {
		return err
	}
	say("held")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Close()
}

func TestLockedByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	holder := startChild(t, "hold", dir)
	if line := holder.line(t); line != "held" {
		t.Fatal(line)
	}
	var locked *LockedError
	_, _, err := Open(dir, testID, quiet)
	if !errors.As(err, &locked) || locked.PID != holder.Process.Pid || !strings.Contains(err.Error(), "process "+strconv.Itoa(holder.Process.Pid)) {
		t.Errorf("got %v, want a LockedError that names process %d", err, holder.Process.Pid)
	}
	if err := errors.Join(holder.stdin.Close(), holder.Wait()); err != nil {
		t.Fatal(err)
	}
	s, _ := mustOpen(t, dir)
	if _, _, err := Open(dir, testID, quiet); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("opened twice in one process: %v", err)
	}
	mustClose(t, s)
}

// writeForEver saves entries, sometimes a snapshot, and says after each save
// what is durable.
func writeForEver(dir string, say func(string, ...any)) error {
	s, state, err := Open(dir, testID, quiet)
	if err != nil {
		return err
	}
	next := state.Snapshot.GetMetadata().GetIndex() + uint64(len(state.Entries)) + 1
	term := state.HardState.GetTerm() + 1
	for ; ; next += 3 {
		if err := s.Save(hard(term, 1, next-1), entries(next, next+2, term, 500), nil, true); err != nil {
			return err
		}
		say("%d %d", next+2, term)
		if next%30 < 3 {
			if err := s.Save(nil, nil, snapshotAt(next, term, "state"), true); err != nil {
				return err
			}
		}
	}
}

// TestKill repeatedly kills a process that writes. Everything that it acknowledged must
// still exist.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	s, _ := mustOpen(t, dir)
	mustSave(t, s, nil, nil, snapshotAt(1, 1, "boot"))
	mustClose(t, s)
	for round := range 10 {
		writer := startChild(t, "write", dir)
		for range 20 + 7*round {
			writer.line(t)
		}
		if err := writer.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		acknowledged := writer.lines.Text()
		for writer.lines.Scan() {
			acknowledged = writer.lines.Text()
		}
		_ = writer.Wait() // killed
		var index, term uint64
		if _, err := fmt.Sscan(acknowledged, &index, &term); err != nil {
			t.Fatalf("the last line is %q: %v", acknowledged, err)
		}
		state := reopen(t, dir)
		if last := state.Snapshot.GetMetadata().GetIndex() + uint64(len(state.Entries)); last < index || state.HardState.GetTerm() != term {
			t.Fatalf("round %d: the log ends at entry %d in term %d, acknowledged were %d and %d", round, last, state.HardState.GetTerm(), index, term)
		}
	}
}
