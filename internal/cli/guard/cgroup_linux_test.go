package guard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestNoCgroup(t *testing.T) {
	for _, path := range []string{"", t.TempDir(), t.TempDir() + "/new", "/proc/none/new"} {
		if c := makeCgroup(path); c != nil {
			t.Errorf("%q became a cgroup", path)
		}
	}
	var none *cgroup
	none.kill()
	none.remove()
	if none.populated() {
		t.Error("no cgroup is populated")
	}
}

// TestOrphansOfAnotherNamespace lets the command join a PID namespace, in which its
// orphans get another parent. Only the cgroup still contains them.
func TestOrphansOfAnotherNamespace(t *testing.T) {
	needCgroup(t)
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip(err)
	}
	start := func(t *testing.T, role string, left time.Duration) (*run, *Handle) {
		r := newRun(t)
		first := exec.Command("sleep", "60")
		first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
		if err := first.Start(); err != nil {
			t.Skip("no PID namespace: ", err)
		}
		t.Cleanup(func() { first.Process.Kill(); first.Wait() })
		return r, r.start(r.spec(left, "nsenter", "-t", strconv.Itoa(first.Process.Pid), "-p", "setsid", "-f", os.Args[0], role, r.file))
	}
	t.Run("is waited for", func(t *testing.T) {
		r, h := start(t, "brief", time.Hour)
		r.want(r.wait(h), 0, false)
		if !r.marked("whole") {
			t.Error("Wait returned while a process in the cgroup was at work")
		}
	})
	t.Run("is killed", func(t *testing.T) {
		r, h := start(t, "deaf", 5*time.Second)
		r.want(r.wait(h), 0, true)
		r.diedBefore(h.spec.Deadline)
	})
}

// TestNested runs a command under a guard under a guard, and kills the wrapper
// and the guard of the outer one.
func TestNested(t *testing.T) {
	needCgroup(t)
	r := newRun(t)
	w := r.wrapper(time.Hour, "wrapper", "1h", r.token, "-", os.Args[0], "daemon", r.file)
	path := w.order().cgroupPath
	inner, _ := filepath.Glob(path + "/conclave-*")
	if len(inner) != 1 {
		t.Fatalf("the inner cgroups are %q, want one below %s", inner, path)
	}
	guard := w.guard()
	w.cmd.Process.Kill()
	unix.Kill(guard, unix.SIGKILL)
	r.gone()
	r.until("both cgroups are gone", func() bool { return len(cgroupsOf(w.cmd.Process.Pid)) == 0 })
}

// TestDelegated runs the wrapper as a user who may make a cgroup, and as one who
// may not.
func TestDelegated(t *testing.T) {
	needCgroup(t)
	const nobody = 65534
	for name, delegated := range map[string]bool{"delegated": true, "not delegated": false} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			for _, dir := range []string{filepath.Dir(r.file), filepath.Dir(filepath.Dir(r.file))} {
				if err := os.Chmod(dir, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			own := makeCgroup(newCgroupPath())
			t.Cleanup(own.remove) // after the wrapper's end
			if delegated {
				for _, path := range []string{own.path, own.path + "/cgroup.procs"} {
					if err := os.Chown(path, nobody, nobody); err != nil {
						t.Fatal(err)
					}
				}
			}
			dir, err := os.Open(own.path)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			r.attr = &syscall.SysProcAttr{
				UseCgroupFD: true, CgroupFD: int(dir.Fd()), Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
			}
			w := r.wrapper(time.Hour, "daemon", r.file)
			if path := w.order().cgroupPath; strings.HasPrefix(path, own.path+"/") != delegated || path == "" == delegated {
				t.Errorf("the command's cgroup is %q, want one below %s only if that is delegated", path, own.path)
			}
			guard := w.guard()
			w.cmd.Process.Kill()
			unix.Kill(guard, unix.SIGKILL)
			r.gone()
			r.until("the wrapper's cgroup is empty", func() bool {
				left, _ := filepath.Glob(own.path + "/conclave-*")
				return len(left) == 0 && !own.populated()
			})
		})
	}
}
