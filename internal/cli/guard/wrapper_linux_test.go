package guard

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// wrapped is a wrapper in a process of its own.
type wrapped struct {
	*run
	cmd      *exec.Cmd
	out      *bufio.Scanner
	deadline boottime.Time
}

func (r *run) wrapper(left time.Duration, role ...string) *wrapped {
	r.t.Helper()
	w := r.command(left, r.role(role...)...)
	r.writing()
	return w
}

// command is a wrapper of any command.
func (r *run) command(left time.Duration, argv ...string) *wrapped {
	r.t.Helper()
	args := append([]string{"wrapper", left.String(), r.token, r.mode}, argv...)
	w := &wrapped{run: r, cmd: exec.Command("/proc/self/exe", args...)}
	w.cmd.SysProcAttr = r.attr
	w.cmd.Stderr = os.Stderr
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		w.cmd.Process.Kill()
		w.cmd.Wait()
		for _, path := range cgroupsOf(w.cmd.Process.Pid) {
			r.t.Errorf("%s is left over", path)
		}
	})
	w.out = bufio.NewScanner(out)
	w.out.Scan()
	n, err := strconv.ParseInt(w.out.Text(), 10, 64)
	if err != nil {
		r.t.Fatalf("the wrapper said %q: %v", w.out.Text(), err)
	}
	w.deadline = boottime.Time(n)
	return w
}

func (w *wrapped) outcome() outcome {
	w.t.Helper()
	var o outcome
	w.out.Scan()
	if err := json.Unmarshal(w.out.Bytes(), &o); err != nil {
		w.t.Fatalf("the wrapper said %q: %v", w.out.Text(), err)
	}
	return o
}

func (w *wrapped) guard() int    { return w.descendant(guardCommand) }
func (w *wrapped) sentinel() int { return w.descendant(sentinelCommand) }

// descendant returns the pid of the wrapper's descendant that has a role.
func (w *wrapped) descendant(role string) int {
	w.t.Helper()
	all, err := descendants(w.cmd.Process.Pid)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range all {
		if roleOf(p.pid) == role {
			return p.pid
		}
	}
	w.t.Fatalf("the wrapper has no descendant with the role %s", role)
	return 0
}

// order returns what the guard was told.
func (w *wrapped) order() order {
	w.t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.guard()))
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := parseOrder(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")[2:])
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func TestWrapperKilled(t *testing.T) {
	for _, role := range []string{"stamp", "deaf", "daemon"} {
		t.Run(role, func(t *testing.T) {
			r := newRun(t)
			w := r.wrapper(time.Hour, role, r.file)
			killed := boottime.Now()
			w.cmd.Process.Kill()
			r.gone()
			r.diedBefore(killed.Add(15 * time.Second)) // at once, and not at the deadline
		})
	}
}

func TestWrapperKilledShortlyBeforeDeadline(t *testing.T) {
	r := newRun(t)
	w := r.wrapper(shortly, "daemon", r.file)
	w.cmd.Process.Kill()
	r.gone()
	r.diedBefore(w.deadline)
}

func TestWrapperStopped(t *testing.T) {
	for _, role := range []string{"stamp", "deaf", "daemon"} {
		t.Run(role, func(t *testing.T) {
			r := newRun(t)
			w := r.wrapper(shortly, role, r.file)
			w.cmd.Process.Signal(unix.SIGSTOP)
			// The guard may stay as a zombie, which has no environment.
			r.gone()
			r.diedBefore(w.deadline)
			w.cmd.Process.Signal(unix.SIGCONT)
			// On a busy machine the sentinel may have ended all before the guard did.
			if o := w.outcome(); !o.Result.Lost || o.Err != "" && o.Err != ErrGuardDied.Error() {
				t.Errorf("got %+v, want a lost command", o)
			}
		})
	}
}

// TestGuardKilled sees that the wrapper inherits what a dead guard leaves.
func TestGuardKilled(t *testing.T) {
	r := newRun(t)
	w := r.wrapper(time.Hour, "daemon", r.file)
	unix.Kill(w.guard(), unix.SIGKILL)
	if o := w.outcome(); o.Err != ErrGuardDied.Error() || o.Result.Lost || o.Result.Status != 137 {
		t.Errorf("got %+v, want %q", o, ErrGuardDied)
	}
	if left := r.left(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestGuardStopped(t *testing.T) {
	r := newRun(t)
	w := r.wrapper(shortly, "daemon", r.file)
	unix.Kill(w.guard(), unix.SIGSTOP)
	if o := w.outcome(); o.Err != ErrGuardDied.Error() || !o.Result.Lost {
		t.Errorf("got %+v, want %q", o, ErrGuardDied)
	}
	r.diedBefore(w.deadline)
}

func TestOrderSurvivesTheCommandLine(t *testing.T) {
	want := order{control: 7, report: 8, deadline: 1 << 50, grace: 3 * time.Second, margin: time.Millisecond,
		terminal: true, wrapperGroup: 12, cgroupPath: "/sys/fs/a b", children: LeaveChildren, path: "/bin/\xff", argv: []string{"a b", "", "--", "\n"}}
	got, err := parseOrder(want.args())
	if err != nil || strings.Join(got.args(), "|") != strings.Join(want.args(), "|") || len(got.argv) != 4 {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	for _, args := range [][]string{nil, {"1", "2"}, append([]string{"x"}, want.args()[1:]...)} {
		if _, err := parseOrder(args); err == nil {
			t.Errorf("%q was taken for an order", args)
		}
	}
}

// TestInheritedDescriptors runs a wrapper that was given a descriptor for its
// command, as make gives its jobserver.
func TestInheritedDescriptors(t *testing.T) {
	r := newRun(t)
	path := filepath.Join(t.TempDir(), "given")
	given, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	cmd := exec.Command("/proc/self/exe", "wrapper", "1h", r.token, "-", "sh", "-c", "echo hello >&4; exit 6")
	cmd.ExtraFiles = []*os.File{nil, given}
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 6 {
		t.Errorf("got %v, want exit status 6", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "hello\n" {
		t.Errorf("the command wrote %q", got)
	}
}
