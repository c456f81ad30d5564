package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// TestWrapperAndGuardKilled sees that the sentinel ends at once what they leave.
func TestWrapperAndGuardKilled(t *testing.T) {
	for _, mode := range []string{"-", withoutCgroup} {
		for _, role := range []string{"stamp", "deaf", "daemon", "storm"} {
			t.Run(mode+" "+role, func(t *testing.T) {
				newRun := newRun
				if role == "storm" {
					newRun = newLoneRun
				}
				r := newRun(t)
				r.mode = mode
				w := r.wrapper(time.Hour, role, r.file)
				guard := w.guard()
				killed := boottime.Now()
				w.cmd.Process.Kill()
				unix.Kill(guard, unix.SIGKILL)
				r.gone()
				r.diedBefore(killed.Add(15 * time.Second)) // at once, and not at the deadline
			})
		}
	}
}

// TestAnyOneIsEnough kills or stops two of wrapper, guard and sentinel.
func TestAnyOneIsEnough(t *testing.T) {
	for _, mode := range []string{"-", withoutCgroup} {
		for _, survivor := range []string{"wrapper", guardCommand, sentinelCommand} {
			for _, sig := range []syscall.Signal{unix.SIGKILL, unix.SIGSTOP} {
				t.Run(fmt.Sprint(mode, " ", survivor, " ", sig), func(t *testing.T) {
					r := newRun(t)
					r.mode = mode
					w := r.wrapper(shortly, "daemon", r.file)
					pids := map[string]int{"wrapper": w.cmd.Process.Pid, guardCommand: w.guard(), sentinelCommand: w.sentinel()}
					delete(pids, survivor)
					for _, pid := range pids {
						unix.Kill(pid, sig)
					}
					r.until("no process of the command is left", func() bool { return len(r.working()) == 0 })
					r.diedBefore(w.deadline)
					for _, pid := range pids {
						unix.Kill(pid, unix.SIGCONT)
					}
					r.gone()
					r.until("no cgroup is left", func() bool { return len(cgroupsOf(w.cmd.Process.Pid)) == 0 })
				})
			}
		}
	}
}

// TestStoppedSentinelKeepsNobody sees that the end of a command is not held up.
func TestStoppedSentinelKeepsNobody(t *testing.T) {
	r := newRun(t)
	w := r.wrapper(time.Hour, "brief", r.file)
	unix.Kill(w.sentinel(), unix.SIGSTOP)
	if o := w.outcome(); o.Result != (Result{}) || o.Err != "" {
		t.Errorf("got %+v, want success", o)
	}
}

// TestSentinelIsApart checks that the sentinel shares neither the name, the session nor
// the open files of the wrapper.
func TestSentinelIsApart(t *testing.T) {
	r := newRun(t)
	w := r.wrapper(time.Hour, "daemon", r.file)
	pid := w.sentinel()
	read := func(name string) string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	number := w.order().control + 1
	if got, want := read("cmdline"), fmt.Sprintf("sentinel\x00__sentinel\x00%d\x00", number); got != want {
		t.Errorf("the command line is %q, want %q", got, want)
	}
	if got := read("comm"); got != "sentinel\n" {
		t.Errorf("the name is %q", got)
	}
	r.until("it has a session of its own", func() bool {
		sid, err := unix.Getsid(pid)
		return err == nil && sid == pid
	})
	r.until("it holds only what it needs", func() bool { return len(foreign(pid, number)) == 0 })
	w.cmd.Process.Kill()
	r.gone()
}

// foreign returns the open files of a sentinel that are not its own.
func foreign(pid, control int) (found []string) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, name := range names {
		file, _ := os.Readlink(name)
		switch {
		case file == "/dev/null", strings.HasPrefix(file, "anon_inode:"), strings.Contains(file, "/cgroup/"): // Go's runtime reads some
		case filepath.Base(name) == fmt.Sprint(control):
		default:
			found = append(found, name+" "+file)
		}
	}
	return found
}

// TestSentinelLeavesTheTerminalsSession sees that it does although the guard,
// its child, has to stay.
func TestSentinelLeavesTheTerminalsSession(t *testing.T) {
	s := newScreen(newRun(t))
	s.runWrapper("")
	s.expect("reading")
	session := map[string]int{}
	s.until("guard and sentinel run", func() bool {
		for _, pid := range s.left() {
			session[roleOf(pid)], _ = unix.Getsid(pid)
		}
		return session[sentinelCommand] != 0 && session[sentinelCommand] != s.cmd.Process.Pid
	})
	if session[guardCommand] != s.cmd.Process.Pid {
		t.Errorf("the guard is in session %d, want the shell's, %d", session[guardCommand], s.cmd.Process.Pid)
	}
	s.typeKeys(ctrlC)
	s.expect(`"Status":130`)
}
