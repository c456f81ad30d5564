package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// Handle is a running command, seen from the wrapper.
type Handle struct {
	spec      Spec
	sentinel  *os.Process   // the guard's parent; it ends after the guard
	cgroup    string        // the path that the command's cgroup has, if it has one
	control   *os.File      // to the guard
	deadlines *os.File      // to the sentinel
	report    *os.File      // from the guard
	remain    chan Result   // how the command ended, if it has left processes
	done      chan struct{} // closed when result and err are final

	mu       sync.Mutex
	deadline boottime.Time

	result Result
	err    error
}

// Start starts the command under a guard. The error is a *StartError if the command is the cause.
// Afterwards the caller sends each new deadline with Extend, and calls Wait.
func Start(spec Spec) (*Handle, error) {
	spec = spec.withDefaults()
	path, err := Lookup(spec.Argv[0])
	if err != nil {
		return nil, err
	}
	if spec.Sole {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("guard: subreaper: %w", err)
		}
	}
	h := &Handle{spec: spec, deadline: spec.Deadline, remain: make(chan Result, 1), done: make(chan struct{})}
	if err := h.launch(path); err != nil {
		return nil, err
	}
	if err := h.started(); err != nil {
		h.closePipes()
		h.sentinel.Wait()
		return nil, err
	}
	go h.follow()
	return h, nil
}

// launch starts the sentinel, which starts the guard. It uses the binary of this process, even if its
// file has changed or is gone.
func (h *Handle) launch(path string) error {
	pipes, err := newPipes()
	if err != nil {
		return err
	}
	h.control, h.deadlines, h.report = pipes[0].in, pipes[1].in, pipes[2].out
	tty := false
	if h.spec.Terminal {
		if t := openTerminal(); t != nil {
			tty = true
			t.close()
		}
	}
	if !h.spec.noCgroup {
		h.cgroup = newCgroupPath()
	}
	ends := []*os.File{pipes[0].out, pipes[1].out, pipes[2].in}
	files, first := inherited(h.spec, ends)
	o := order{
		control: first, report: first + 2, deadline: h.spec.Deadline, grace: h.spec.Grace, margin: h.spec.Margin,
		terminal: tty, wrapperGroup: unix.Getpgrp(), cgroupPath: h.cgroup, children: h.spec.Children, path: path, argv: h.spec.Argv,
	}
	pid, _, err := syscall.StartProcess(self, []string{sentinelName, sentinelCommand, strconv.Itoa(first + 1)}, &syscall.ProcAttr{
		Env: h.spec.Env, Files: files, Sys: newGroup(tty),
	})
	for _, end := range ends {
		end.Close()
	}
	if err == nil {
		h.sentinel, err = os.FindProcess(pid)
	}
	if err != nil {
		h.closePipes()
		return cannotStart(err)
	}
	_ = o.writeTo(h.deadlines) // a sentinel that is gone does not report a start
	return nil
}

// self is the binary of this process.
const self = "/proc/self/exe"

// cannotStart returns the error of a guard process that was not started.
func cannotStart(err error) error {
	err = fmt.Errorf("guard: cannot start the guard process: %s: %w", self, err)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; mount /proc", err)
	}
	return err
}

// newGroup makes a process leave the group of the terminal's job. Without a terminal the process also
// leaves the session.
func newGroup(tty bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: !tty, Setpgid: tty}
}

type pipe struct{ out, in *os.File }

// newPipes makes three pipes: to the guard, to the sentinel, and from the guard.
func newPipes() (pipes [3]pipe, err error) {
	for i := range pipes {
		if pipes[i].out, pipes[i].in, err = os.Pipe(); err != nil {
			for _, p := range pipes[:i] {
				p.out.Close()
				p.in.Close()
			}
			return pipes, fmt.Errorf("guard: %w", err)
		}
	}
	return pipes, nil
}

func (h *Handle) closePipes() {
	for _, f := range []*os.File{h.control, h.deadlines, h.report} {
		f.Close()
	}
}

// inherited returns the file descriptors of sentinel and guard. The standard ones come first. Then come
// those that this process inherited for its children, such as a jobserver's; they keep their numbers.
// The ends of the pipes come last, and the first of them gets the number first.
func inherited(spec Spec, ends []*os.File) (files []uintptr, first int) {
	files = []uintptr{spec.Stdin.Fd(), spec.Stdout.Fd(), spec.Stderr.Fd()}
	ours := 0
	for _, end := range ends {
		ours = max(ours, int(end.Fd()))
	}
	for fd := 3; fd <= ours; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			files = append(files, uintptr(fd))
		} else {
			files = append(files, ^uintptr(0))
		}
	}
	first = len(files)
	for _, end := range ends {
		files = append(files, end.Fd())
	}
	return files, first
}

// started waits for the result of the start.
func (h *Handle) started() error {
	r, err := readRecord(h.report)
	switch {
	case err == nil:
	case boottime.Now() >= h.fallback(): // it was ended before it could report the start
		return ErrTooLate
	default:
		return ErrGuardDied
	}
	switch r.op {
	case opStarted:
		return nil
	case opTooLate:
		return ErrTooLate
	default:
		return startError(h.spec.Argv[0], syscall.Errno(r.value))
	}
}

// Extend tells guard and sentinel of a later deadline.
func (h *Handle) Extend(deadline boottime.Time) {
	h.mu.Lock()
	h.deadline = max(h.deadline, deadline)
	h.mu.Unlock()
	h.tell(h.control, opExtend, int64(deadline))
	h.tell(h.deadlines, opExtend, int64(deadline))
}

// Signal passes a signal on to the command.
func (h *Handle) Signal(sig syscall.Signal) { h.tell(h.control, opSignal, int64(sig)) }

// Stop ends the command: TERM, and KILL after the grace. It does not wait.
func (h *Handle) Stop() { h.tell(h.control, opStop, 0) }

// tell does not wait for a guard or a sentinel that does not read. At the deadline, another of the three
// processes ends the command.
func (h *Handle) tell(to *os.File, op byte, value int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = to.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_ = record{op, value}.writeTo(to) // a guard that is gone has reported
}

// Wait returns when nothing is left of the command: neither it nor any of its
// descendants.
func (h *Handle) Wait() (Result, error) {
	<-h.done
	return h.result, h.err
}

// follow reads the guard's reports until the end.
func (h *Handle) follow() {
	defer close(h.done)
	over := make(chan struct{})
	var helpers sync.WaitGroup
	if h.spec.Sole {
		helpers.Go(func() { h.standBy(over) })
	}
	if h.spec.Terminal {
		helpers.Go(func() { h.resume(over) })
	}
	if h.spec.Remaining != nil {
		helpers.Go(func() { h.announce(over) })
	}
	ended := h.listen()
	// The sentinel ends what the guard leaves, unless the sentinel was stopped.
	_ = h.sentinel.Signal(unix.SIGCONT)
	h.sentinel.Wait()
	close(over)
	helpers.Wait()
	h.closePipes()
	if !ended {
		h.takeOver()
	}
}

// listen reports whether the guard reported the end of the command. If not, the guard is dead.
func (h *Handle) listen() bool {
	for {
		r, err := readRecord(h.report)
		if err != nil {
			return false
		}
		switch r.op {
		case opStopped:
			h.suspend(r.signal())
		case opLost:
			h.result.Lost = true
		case opForeground:
			h.result.Foreground = true
		case opRemain:
			h.remain <- resultOf(unix.WaitStatus(r.value))
		case opExited:
			h.result.Status = int(r.value)
			return true
		case opKilled:
			h.result.Status, h.result.Signal = statusSignal+int(r.value), r.signal()
			return true
		}
	}
}

// resultOf returns how a command ended that has a wait status.
func resultOf(status unix.WaitStatus) Result {
	if status.Signaled() {
		return Result{Status: statusSignal + int(status.Signal()), Signal: status.Signal()}
	}
	return Result{Status: status.ExitStatus()}
}

// announce calls Spec.Remaining if processes are left for a while after the command has exited.
func (h *Handle) announce(over <-chan struct{}) {
	var command Result
	select {
	case command = <-h.remain:
	case <-over:
		return
	}
	select {
	case <-time.After(remainingAfter):
	case <-over:
		return
	}
	left, err := remaining(h.sentinel.Pid, h.cgroup)
	if len(left) > 0 || err != nil {
		h.spec.Remaining(command, left)
	}
}

// takeOver ends the processes that are left when guard and sentinel are dead. The command itself died
// with the guard.
func (h *Handle) takeOver() {
	h.result.Status, h.result.Signal, h.err = statusSignal+int(unix.SIGKILL), unix.SIGKILL, ErrGuardDied
	h.result.Lost = boottime.Now() >= h.fallback()
	if h.spec.Sole {
		h.killAll()
	}
}

func (h *Handle) killAll() {
	r := reaper{cgroup: openCgroup(h.cgroup)}
	r.killAll()
	r.cgroup.remove()
}

// fallback returns when the command must be dead if the guard works. At that time the sentinel kills the
// guard and all that is left. The wrapper does so too if Spec.Sole allows it.
func (h *Handle) fallback() boottime.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline.Add(-h.spec.Margin / 2)
}

// standBy kills a guard and a sentinel that miss their deadline because they were stopped.
func (h *Handle) standBy(over <-chan struct{}) {
	a, err := newAlarm()
	if err != nil {
		return // out of file descriptors; guard and sentinel are not affected
	}
	defer a.close()
	for {
		at := h.fallback()
		if boottime.Now() >= at {
			h.killAll()
			return
		}
		a.set(at)
		select {
		case <-over:
			return
		case <-a.C:
		}
	}
}

// suspend stops this process and its whole job, in the same way as the terminal stopped the command, so
// that the shell takes over.
func (h *Handle) suspend(sig syscall.Signal) {
	if h.spec.Suspended != nil {
		h.spec.Suspended()
	}
	unix.Kill(0, sig)
	// The kernel does not stop a job that no shell controls. Nothing would continue such a job,
	// so it continues at once.
	time.AfterFunc(orphanPause, func() { h.tell(h.control, opResume, 0) })
}

// orphanPause is longer than the kernel needs to stop a process that stops itself, so that a process
// that is being stopped does not run past it.
const orphanPause = 200 * time.Millisecond

// resume tells the guard whenever the shell continues this job.
func (h *Handle) resume(over <-chan struct{}) {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, unix.SIGCONT)
	defer signal.Stop(continued)
	for {
		select {
		case <-over:
			return
		case <-continued:
			h.tell(h.control, opResume, 0)
		}
	}
}
