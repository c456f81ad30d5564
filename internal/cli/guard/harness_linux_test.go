package guard

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// testMargin leaves room for a machine that is busy with other tests: in half of it the guard must have
// killed all, or the sentinel does.
const testMargin = 2 * time.Second

// shortly is a deadline that a test waits for, with time for a busy machine to start all processes first.
const shortly = 7 * time.Second

// tokenVar marks, in their environment, the guard and the command of one test
// with all its descendants, so that the test can tell whether any is left.
const tokenVar = "GUARD_TEST_TOKEN="

// run is one command of one test.
type run struct {
	t     *testing.T
	token string
	file  string               // what the command's processes stamp
	mode  string               // of the wrapper: "-", "tty", or some of leaveMode and withoutCgroup
	attr  *syscall.SysProcAttr // of the wrapper
}

// withoutCgroup is the mode of a wrapper that does not use one.
const withoutCgroup = "without cgroup"

// leaveMode is the mode of a wrapper that leaves the processes that are left of its command.
const leaveMode = "leave "

// cgroupsOf returns the cgroups that a wrapper has made and that are left.
func cgroupsOf(wrapper int) []string {
	own := newCgroupPath()
	if own == "" {
		return nil
	}
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(own), fmt.Sprintf("conclave-%d-*", wrapper)))
	return found
}

// needCgroup skips a test if this system does not allow a cgroup.
func needCgroup(t *testing.T) {
	t.Helper()
	c := makeCgroup(newCgroupPath())
	if c == nil {
		t.Skip("no cgroup can be made: it needs version 2, cgroup.kill, and root or delegation")
	}
	c.remove()
}

func newRun(t *testing.T) *run {
	t.Helper()
	t.Parallel()
	return newLoneRun(t)
}

// newLoneRun is newRun for a command that keeps all processors busy: no other test runs beside it.
func newLoneRun(t *testing.T) *run {
	t.Helper()
	r := &run{t: t, token: strconv.FormatUint(rand.Uint64(), 16), file: filepath.Join(t.TempDir(), "stamps"), mode: "-"}
	t.Cleanup(func() {
		for _, pid := range r.left() {
			t.Errorf("process %d is left over", pid)
			if p, err := os.FindProcess(pid); err == nil {
				p.Kill()
			}
		}
	})
	return r
}

// spec runs this binary in a role, with a deadline that is left away.
func (r *run) spec(left time.Duration, argv ...string) Spec {
	return Spec{
		Argv: argv, Env: append(os.Environ(), tokenVar+r.token), Deadline: boottime.Now().Add(left),
		Grace: 100 * time.Millisecond, Margin: testMargin,
	}
}

// unhurried is a spec without a deadline that matters. A command gets so long to end by itself that a busy
// machine does not matter either.
func (r *run) unhurried(argv ...string) Spec {
	s := r.spec(time.Hour, argv...)
	s.Grace = 20 * time.Second
	return s
}

func (r *run) role(args ...string) []string { return append([]string{"/proc/self/exe"}, args...) }

func (r *run) start(spec Spec) *Handle {
	r.t.Helper()
	h, err := Start(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return h
}

func (r *run) wait(h *Handle, allowed ...error) Result {
	r.t.Helper()
	res, err := h.Wait()
	if err != nil && !slices.Contains(allowed, err) {
		r.t.Fatal(err)
	}
	if left := r.left(); len(left) > 0 {
		r.t.Errorf("Wait returned while processes %v were left", left)
	}
	return res
}

// left returns the processes that bear the token.
func (r *run) left() []int {
	var left []int
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range names {
		env, err := os.ReadFile(name)
		if err == nil && bytes.Contains(env, []byte(tokenVar+r.token)) {
			pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
			left = append(left, pid)
		}
	}
	return left
}

// working returns the processes that bear the token but guard and sentinel.
func (r *run) working() []int {
	return slices.DeleteFunc(r.left(), func(pid int) bool {
		role := roleOf(pid)
		return role == guardCommand || role == sentinelCommand
	})
}

// roleOf returns the first argument of a process.
func roleOf(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if args := strings.Split(string(line), "\x00"); len(args) > 1 {
		return args[1]
	}
	return ""
}

// stamps returns the readings that the command's processes have written.
func (r *run) stamps() []boottime.Time {
	data, _ := os.ReadFile(r.file)
	var stamps []boottime.Time
	for line := range strings.Lines(string(data)) {
		n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err == nil {
			stamps = append(stamps, boottime.Time(n))
		}
	}
	return stamps
}

func (r *run) lastStamp() boottime.Time {
	r.t.Helper()
	stamps := r.stamps()
	if len(stamps) == 0 {
		r.t.Fatal("the command wrote nothing")
	}
	last := stamps[0]
	for _, s := range stamps {
		last = max(last, s)
	}
	return last
}

// diedBefore checks what it is all about.
func (r *run) diedBefore(deadline boottime.Time) {
	r.t.Helper()
	if last := r.lastStamp(); last >= deadline {
		r.t.Errorf("the last write came %v after the deadline", last.Sub(deadline))
	}
}

func (r *run) writing() {
	r.t.Helper()
	r.until("the command writes", func() bool { return len(r.stamps()) > 5 })
}

func (r *run) gone() {
	r.t.Helper()
	r.until("all processes are gone", func() bool { return len(r.left()) == 0 })
}

func (r *run) marked(word string) bool {
	_, err := os.Stat(r.file + "." + word)
	return err == nil
}

// until polls a condition, for at most 20 seconds.
func (r *run) until(what string, cond func() bool) {
	r.t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); !cond(); <-poll.C {
		if time.Now().After(end) {
			r.t.Fatal("waited in vain until ", what)
		}
	}
}

func (r *run) want(got Result, status int, lost bool) {
	r.t.Helper()
	if got.Status != status || got.Lost != lost {
		r.t.Errorf("got %s, want status %d, lost %v", fmt.Sprintf("%+v", got), status, lost)
	}
}
