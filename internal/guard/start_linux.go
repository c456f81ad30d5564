package guard

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/boottime"
)

// Handle is a running command, seen from the wrapper.
type Handle struct {
	spec    Spec
	guard   *os.Process
	control *os.File
	report  *os.File
	done    chan struct{} // closed when result and err are final

	mu       sync.Mutex
	deadline boottime.Time
	stopping bool

	result Result
	err    error
}

// Start starts the command under a guard. The error is a *StartError if it is
// the command's fault. Afterwards the caller sends each new deadline with
// Extend, and calls Wait.
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
	h := &Handle{spec: spec, deadline: spec.Deadline, done: make(chan struct{})}
	if err := h.launch(path); err != nil {
		return nil, err
	}
	if err := h.started(); err != nil {
		h.control.Close()
		h.report.Close()
		h.guard.Wait()
		return nil, err
	}
	go h.follow()
	return h, nil
}

// launch starts the guard process, from this binary whatever has become of its
// file.
func (h *Handle) launch(path string) error {
	pipes, err := newPipes()
	if err != nil {
		return err
	}
	tty := false
	if h.spec.Terminal {
		if t := openTerminal(); t != nil {
			tty = true
			t.close()
		}
	}
	files, control, report := inherited(h.spec, pipes.controlOut, pipes.reportIn)
	o := order{
		control: control, report: report, deadline: h.spec.Deadline, grace: h.spec.Grace, margin: h.spec.Margin,
		terminal: tty, wrapperGroup: unix.Getpgrp(), path: path, argv: h.spec.Argv,
	}
	pid, _, err := syscall.StartProcess("/proc/self/exe", append([]string{"conclave", Command}, o.args()...), &syscall.ProcAttr{
		Env: h.spec.Env, Files: files, Sys: &syscall.SysProcAttr{Setsid: !tty, Setpgid: tty},
	})
	pipes.closeGuardEnds()
	h.control, h.report = pipes.control, pipes.report
	if err == nil {
		h.guard, err = os.FindProcess(pid)
	}
	if err != nil {
		h.control.Close()
		h.report.Close()
		return fmt.Errorf("guard: cannot start the guard process: %w", err)
	}
	return nil
}

// pipes are the two pipes between wrapper and guard, four ends in all.
type pipes struct {
	control, report      *os.File
	controlOut, reportIn *os.File // the guard's
}

func newPipes() (p pipes, err error) {
	if p.controlOut, p.control, err = os.Pipe(); err != nil {
		return p, fmt.Errorf("guard: %w", err)
	}
	if p.report, p.reportIn, err = os.Pipe(); err != nil {
		p.controlOut.Close()
		p.control.Close()
		return p, fmt.Errorf("guard: %w", err)
	}
	return p, nil
}

func (p pipes) closeGuardEnds() {
	p.controlOut.Close()
	p.reportIn.Close()
}

// inherited returns the file descriptors of the guard: the standard ones, then
// those that whoever started this process meant for its children (a jobserver's,
// for one), under their own numbers, then the two pipe ends.
func inherited(spec Spec, controlOut, reportIn *os.File) (files []uintptr, control, report int) {
	files = []uintptr{spec.Stdin.Fd(), spec.Stdout.Fd(), spec.Stderr.Fd()}
	ours := max(int(controlOut.Fd()), int(reportIn.Fd()))
	for fd := 3; fd <= ours; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			files = append(files, uintptr(fd))
		} else {
			files = append(files, ^uintptr(0))
		}
	}
	control, report = len(files), len(files)+1
	return append(files, controlOut.Fd(), reportIn.Fd()), control, report
}

// started waits for what became of the start.
func (h *Handle) started() error {
	r, err := readRecord(h.report)
	if err != nil {
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

// Extend tells the guard of a later deadline.
func (h *Handle) Extend(deadline boottime.Time) {
	h.mu.Lock()
	h.deadline = max(h.deadline, deadline)
	h.mu.Unlock()
	h.tell(opExtend, int64(deadline))
}

// Signal passes a signal on to the command.
func (h *Handle) Signal(sig syscall.Signal) { h.tell(opSignal, int64(sig)) }

// Stop ends the command: TERM, and KILL after the grace. It does not wait.
func (h *Handle) Stop() {
	h.mu.Lock()
	h.stopping = true
	h.mu.Unlock()
	h.tell(opStop, 0)
}

// tell does not wait for a guard that does not listen: the stand-in of Spec.Sole
// sees to such a guard at the deadline.
func (h *Handle) tell(op byte, value int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.control.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_ = record{op, value}.writeTo(h.control) // a guard that is gone has reported
}

// Wait returns when nothing is left of the command: neither it nor any of its
// descendants.
func (h *Handle) Wait() (Result, error) {
	<-h.done
	return h.result, h.err
}

// follow hears the guard's reports until the end.
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
	ended := h.listen()
	close(over)
	helpers.Wait()
	h.control.Close()
	h.report.Close()
	h.guard.Wait()
	if !ended {
		h.takeOver()
	}
}

// listen returns whether the guard reported the end of the command; if not, the
// guard is dead.
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
		case opExited:
			h.result.Status = int(r.value)
			return true
		case opKilled:
			h.result.Status, h.result.Signal = statusSignal+int(r.value), r.signal()
			return true
		}
	}
}

// takeOver ends what a dead guard has left. The command itself died with it.
func (h *Handle) takeOver() {
	h.result.Status, h.result.Signal, h.err = statusSignal+int(unix.SIGKILL), unix.SIGKILL, ErrGuardDied
	h.result.Lost = boottime.Now() >= h.fallback()
	if h.spec.Sole {
		(&reaper{}).killAll()
	}
}

// fallback is when the command should be dead if the guard did its duty.
func (h *Handle) fallback() boottime.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline.Add(-h.spec.Margin / 2)
}

// standBy kills a guard that lets its time pass, because somebody stopped it.
func (h *Handle) standBy(over <-chan struct{}) {
	a, err := newAlarm()
	if err != nil {
		return // out of file descriptors; the guard itself is not affected
	}
	defer a.close()
	for {
		at := h.fallback()
		if boottime.Now() >= at {
			h.guard.Kill()
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

// suspend stops this process and its whole job as the terminal has stopped the
// command, so that the shell takes over.
func (h *Handle) suspend(sig syscall.Signal) {
	if h.spec.Suspended != nil {
		h.spec.Suspended()
	}
	unix.Kill(0, sig)
	// The kernel does not stop a job that no shell looks after. Then nobody
	// will continue it either, and it goes on at once.
	time.AfterFunc(orphanPause, func() { h.tell(opResume, 0) })
}

// orphanPause is more than the kernel needs to stop a process that stops
// itself, so that a stopped process does not get past it.
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
			h.tell(opResume, 0)
		}
	}
}
