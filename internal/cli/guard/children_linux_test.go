package guard

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// leaving is a script that exits with 4 and leaves a process in a role, in a session of its own. Its
// arguments are the binary, the role and the file of stamps.
const leaving = `setsid "$0" "$@" & while ! test -s "$2"; do sleep 0.01; done; exit 4`

// leaving runs the script with a role.
func (r *run) leaving(role string, children Children) Spec {
	spec := r.unhurried("sh", "-c", leaving, os.Args[0], role, r.file)
	spec.Children = children
	return spec
}

// endAll kills what a test has left on purpose.
func (r *run) endAll() {
	r.t.Helper()
	for _, pid := range r.left() {
		unix.Kill(pid, unix.SIGKILL)
	}
	r.gone()
}

// TestRemainingProcessesAreTold: somebody who wonders why a command does not end is told which processes
// it waits for. Until then the lock seemed to hang.
func TestRemainingProcessesAreTold(t *testing.T) {
	r := newRun(t)
	type told struct {
		command Result
		left    []Process
	}
	calls := make(chan told, 2)
	spec := r.leaving("stamp", AwaitChildren)
	spec.Remaining = func(command Result, left []Process) { calls <- told{command, left} }
	h := r.start(spec)
	got := <-calls
	r.want(got.command, 4, false)
	if len(got.left) != 1 || got.left[0].PID != r.working()[0] || !strings.HasPrefix(got.left[0].Name, "guard.test") {
		t.Errorf("got %+v, want process %v", got.left, r.working())
	}
	found := Commands(func(environ []string) bool {
		return strings.Contains(strings.Join(environ, "\n"), tokenVar+r.token)
	})
	if len(found) != 1 || len(found[0].Left) != 1 || found[0].Left[0] != got.left[0] {
		t.Errorf("another process sees %+v", found)
	}
	h.Stop()
	r.want(r.wait(h), 4, false)
	if len(calls) > 0 {
		t.Error("it was told twice")
	}
}

func TestNothingRemains(t *testing.T) {
	r := newRun(t)
	spec := r.unhurried("sh", "-c", "exit 4")
	spec.Remaining = func(_ Result, left []Process) { t.Errorf("processes %v are told", left) }
	r.want(r.wait(r.start(spec)), 4, false)
}

func TestEndChildren(t *testing.T) {
	r := newRun(t)
	spec := r.leaving("deaf", EndChildren)
	spec.Grace = 100 * time.Millisecond
	r.want(r.wait(r.start(spec)), 4, false)
}

// TestLeaveChildren: what the command leaves runs on, also when the wrapper has ended.
func TestLeaveChildren(t *testing.T) {
	for _, mode := range []string{leaveMode, leaveMode + withoutCgroup} {
		t.Run(mode, func(t *testing.T) {
			r := newRun(t)
			defer r.endAll()
			r.mode = mode
			w := r.command(time.Hour, "sh", "-c", leaving, os.Args[0], "stamp", r.file)
			if o := w.outcome(); o.Err != "" || o.Result.Status != 4 || o.Result.Lost {
				t.Errorf("got %+v, want status 4", o)
			}
			if err := w.cmd.Wait(); w.cmd.ProcessState.ExitCode() != 4 {
				t.Errorf("the wrapper ends with %v", err)
			}
			r.until("guard and sentinel have ended", func() bool { return len(r.left()) == len(r.working()) })
			seen := len(r.stamps())
			r.until("the process that was left continues", func() bool { return len(r.stamps()) > seen })
			if left := cgroupsOf(w.cmd.Process.Pid); len(left) > 0 {
				t.Errorf("cgroups %v are left over", left)
			}
		})
	}
}

// Only the exit of the command lets its processes go. A lost lock ends them with the command.
func TestLeaveChildrenIsNotForALoss(t *testing.T) {
	r := newRun(t)
	spec := r.spec(shortly, r.role("daemon", r.file)...)
	spec.Children = LeaveChildren
	if res := r.wait(r.start(spec)); !res.Lost {
		t.Errorf("got %+v, want a lost command", res)
	}
	r.diedBefore(spec.Deadline)
}

// A guard that dies while the command runs has let nobody go: the sentinel kills what is left.
func TestLeaveChildrenIsNotForADeadGuard(t *testing.T) {
	r := newRun(t)
	r.mode = leaveMode
	w := r.wrapper(time.Hour, "daemon", r.file)
	unix.Kill(w.guard(), unix.SIGKILL)
	if o := w.outcome(); o.Err != ErrGuardDied.Error() {
		t.Errorf("got %+v, want %q", o, ErrGuardDied)
	}
	r.gone()
}
