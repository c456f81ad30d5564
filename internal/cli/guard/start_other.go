//go:build !linux

package guard

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// Complete reports whether commands are guarded as the package comment describes. If it is false, only
// their process group is guarded.
const Complete = false

// Handle is a running command.
type Handle struct {
	cmd  *exec.Cmd
	spec Spec
	done chan struct{}

	mu       sync.Mutex
	deadline boottime.Time
	term     *time.Timer // sends TERM before the deadline
	kill     *time.Timer // nil until TERM was sent
	ended    bool
	lost     bool

	result Result
	err    error
}

// Start starts the command. The error is a *StartError if the command is the cause. Afterwards the
// caller sends each new deadline with Extend, and calls Wait.
func Start(spec Spec) (*Handle, error) {
	spec = spec.withDefaults()
	path, err := Lookup(spec.Argv[0])
	if err != nil {
		return nil, err
	}
	h := &Handle{spec: spec, deadline: spec.Deadline, done: make(chan struct{})}
	if boottime.Now() >= h.termAt() {
		return nil, ErrTooLate
	}
	h.cmd = &exec.Cmd{Path: path, Args: spec.Argv, Env: spec.Env, Stdin: spec.Stdin, Stdout: spec.Stdout, Stderr: spec.Stderr}
	own := ownGroup(h.cmd, spec.Terminal)
	if err := own.start(h.cmd); err != nil {
		return nil, startError(spec.Argv[0], err)
	}
	h.result.Foreground = own.foreground
	h.mu.Lock()
	h.term = time.AfterFunc(boottime.Until(h.termAt()), h.expire)
	h.mu.Unlock()
	go h.wait(own)
	return h, nil
}

func (h *Handle) termAt() boottime.Time { return h.deadline.Add(-h.spec.Margin - h.spec.Grace) }

// expire runs when the term timer fires. A new deadline may have arrived before.
func (h *Handle) expire() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if left := boottime.Until(h.termAt()); left > 0 {
		h.term.Reset(left)
		return
	}
	h.end(true)
}

// end is called with mu held.
func (h *Handle) end(lost bool) {
	if h.ended || h.kill != nil {
		return
	}
	h.lost = lost
	signalGroup(h.cmd, syscall.SIGTERM)
	grace := min(h.spec.Grace, boottime.Until(h.deadline.Add(-h.spec.Margin)))
	h.kill = time.AfterFunc(grace, func() { h.Signal(syscall.SIGKILL) })
}

// Extend sets a later deadline.
func (h *Handle) Extend(deadline boottime.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deadline = max(h.deadline, deadline)
}

// Signal passes a signal on to the command's group.
func (h *Handle) Signal(sig syscall.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		signalGroup(h.cmd, sig)
	}
}

// Stop ends the command: TERM, and KILL after the grace. It does not wait.
func (h *Handle) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(false)
}

// Wait returns when the command and all other processes of its group have ended.
func (h *Handle) Wait() (Result, error) {
	<-h.done
	return h.result, h.err
}

// awaitGroup waits for the other processes of the command's group, as Spec.Children says.
func (h *Handle) awaitGroup() {
	h.mu.Lock()
	switch {
	case h.kill != nil: // it was ended, and they with it
	case h.spec.Children == EndChildren:
		h.end(false)
	case h.spec.Children == LeaveChildren:
		h.mu.Unlock()
		return
	}
	h.mu.Unlock()
	announce := time.Now().Add(remainingAfter)
	for told := false; groupLeft(h.cmd); {
		if !told && h.spec.Remaining != nil && time.Now().After(announce) {
			told = true
			status, signal := statusOf(h.cmd.ProcessState)
			h.spec.Remaining(Result{Status: status, Signal: signal}, nil)
		}
		time.Sleep(20 * time.Millisecond) // the system does not report when a group becomes empty
	}
}

func (h *Handle) wait(own group) {
	defer close(h.done)
	err := h.cmd.Wait()
	h.awaitGroup()
	h.mu.Lock()
	defer h.mu.Unlock()
	own.restore()
	h.ended = true
	h.term.Stop()
	if h.kill != nil {
		h.kill.Stop()
	}
	h.result.Lost = h.lost
	h.result.Status, h.result.Signal = statusOf(h.cmd.ProcessState)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.err = fmt.Errorf("guard: %w", err)
	}
}
