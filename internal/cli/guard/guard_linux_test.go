package guard

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

func TestDeadlinePasses(t *testing.T) {
	for _, role := range []string{"stamp", "deaf", "daemon"} {
		t.Run(role, func(t *testing.T) { newRun(t).deadlinePasses(role) })
	}
}

// A storm of processes can keep the guard from its work for so long that the sentinel ends them. What is
// promised then holds too.
func TestDeadlinePassesInStorm(t *testing.T) { newLoneRun(t).deadlinePasses("storm", ErrGuardDied) }

// deadlinePasses runs a command in a role past its deadline. Errors of the guard other than allowed fail
// the test.
func (r *run) deadlinePasses(role string, allowed ...error) {
	spec := r.spec(5*time.Second, r.role(role, r.file)...)
	res := r.wait(r.start(spec), allowed...)
	r.diedBefore(spec.Deadline)
	if !res.Lost || res.Signal == 0 {
		r.t.Errorf("got %+v, want a lost command that a signal ended", res)
	}
}

func TestTermComesBeforeKill(t *testing.T) {
	for role, sig := range map[string]syscall.Signal{"stamp": unix.SIGTERM, "deaf": unix.SIGKILL} {
		t.Run(role, func(t *testing.T) {
			r := newRun(t)
			spec := r.spec(5*time.Second, r.role(role, r.file)...)
			spec.Grace = time.Second
			r.want(r.wait(r.start(spec)), 128+int(sig), true)
			r.diedBefore(spec.Deadline)
		})
	}
}

func TestExtendKeepsAlive(t *testing.T) {
	r := newRun(t)
	spec := r.spec(5*time.Second, r.role("stamp", r.file)...)
	spec.Grace = time.Second
	h := r.start(spec)
	last := spec.Deadline
	r.until("the first deadline is well past", func() bool {
		last = boottime.Now().Add(5 * time.Second)
		h.Extend(last)
		return boottime.Until(spec.Deadline) < -500*time.Millisecond
	})
	r.want(r.wait(h), 128+int(unix.SIGTERM), true)
	r.diedBefore(last)
	if r.lastStamp() < spec.Deadline {
		t.Error("the command was ended although its deadline had moved")
	}
}

func TestExtendAfterTermIsTooLate(t *testing.T) {
	r := newRun(t)
	spec := r.spec(6*time.Second, r.role("last", r.file)...)
	spec.Grace = 2 * time.Second
	h := r.start(spec)
	r.until("the command got TERM", func() bool { return r.marked("termed") })
	h.Extend(boottime.Now().Add(time.Hour))
	r.want(r.wait(h), 128+int(unix.SIGKILL), true)
	r.diedBefore(spec.Deadline)
}

func TestStop(t *testing.T) {
	r := newRun(t)
	h := r.start(r.unhurried(r.role("daemon", r.file)...))
	r.writing()
	h.Stop()
	r.want(r.wait(h), 128+int(unix.SIGTERM), false)
}

func TestStoppedCommandIsEnded(t *testing.T) {
	r := newRun(t)
	h := r.start(r.unhurried(r.role("stamp", r.file)...))
	r.writing()
	h.Signal(unix.SIGSTOP)
	h.Stop()
	r.want(r.wait(h), 128+int(unix.SIGTERM), false)
}

func TestNoTimeToStart(t *testing.T) {
	r := newRun(t)
	if _, err := Start(r.spec(testMargin, r.role("stamp", r.file)...)); !errors.Is(err, ErrTooLate) {
		t.Fatalf("got %v, want %v", err, ErrTooLate)
	}
	if len(r.stamps()) > 0 {
		t.Fatal("the command ran")
	}
}

func TestStatus(t *testing.T) {
	r := newRun(t)
	for script, want := range map[string]int{
		"exit 0": 0, "exit 3": 3, "exit 255": 255, "kill -KILL $$": 137, "kill -TERM $$": 143, "kill -USR1 $$": 138,
	} {
		r.want(r.wait(r.start(r.spec(time.Hour, "sh", "-c", script))), want, false)
	}
}

func TestCannotStart(t *testing.T) {
	r := newRun(t)
	dir := t.TempDir()
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, want := range map[string]int{
		"no-such-command": 127, dir + "/none": 127, "/dev/null/none": 127, "": 127, dir: 126,
		write("plain", "#!/bin/sh\n", 0o600):           126,
		write("lost", "#!/no/such/interpreter", 0o700): 127,
	} {
		_, err := Start(r.spec(time.Hour, name))
		var start *StartError
		if !errors.As(err, &start) || start.Status != want {
			t.Errorf("%q: got %v, want a StartError of status %d", name, err, want)
		}
	}
	script := write("script", "exit 5\n", 0o700)
	r.want(r.wait(r.start(r.spec(time.Hour, script))), 5, false)
}

// TestWaitsForGrandchild checks that a command keeps its lock until its background
// processes have ended too.
func TestWaitsForGrandchild(t *testing.T) {
	r := newRun(t)
	h := r.start(r.spec(time.Hour, "sh", "-c", `setsid "$0" brief "$1" & exit 4`, os.Args[0], r.file))
	res, err := h.Wait()
	if err != nil || !r.marked("whole") {
		t.Fatalf("Wait returned %v while the grandchild was at work", err)
	}
	r.want(res, 4, false)
}

func TestSignalReachesWhatIsLeft(t *testing.T) {
	r := newRun(t)
	h := r.start(r.spec(time.Hour, "sh", "-c", `setsid "$0" stamp "$1" & exit 4`, os.Args[0], r.file))
	r.writing()
	ended := make(chan struct{})
	go func() { defer close(ended); h.Wait() }()
	r.until("TERM has ended the grandchild", func() bool {
		h.Signal(unix.SIGTERM)
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if res := r.wait(h); res.Lost {
		t.Errorf("got %+v, want a command that is not lost", res)
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	r := newRun(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	spec := r.spec(time.Hour, r.role("signals")...)
	spec.Stdout = in
	h := r.start(spec)
	in.Close()
	lines := bufio.NewScanner(out)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the command said %q, want %q", lines.Text(), want)
		}
	}
	expect("ready")
	for _, sig := range []syscall.Signal{unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		h.Signal(sig)
		expect(unix.SignalName(sig))
	}
	h.Signal(unix.SIGKILL)
	r.want(r.wait(h), 137, false)
	if lines.Scan() {
		t.Errorf("then it said %q", lines.Text())
	}
}

// TestStandardFiles checks that the guard and the wrapper do not keep a pipe open that
// the command has closed, and that the command inherits its descriptors.
func TestStandardFiles(t *testing.T) {
	r := newRun(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	spec := r.spec(time.Hour, "sh", "-c", `echo "$CONCLAVE_FENCE"; exec >&- ; exec sleep 30`)
	spec.Env = append(spec.Env, "CONCLAVE_FENCE=17")
	spec.Stdout = in
	h := r.start(spec)
	in.Close()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != "17" {
		t.Errorf("the command said %q", lines.Text())
	}
	if lines.Scan() {
		t.Errorf("then it said %q", lines.Text())
	}
	h.Stop()
	r.want(r.wait(h), 143, false)
}
