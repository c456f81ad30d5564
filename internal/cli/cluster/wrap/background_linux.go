package wrap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// grantedMark ends what a process in the background reports. Without it the report ends with the process.
const grantedMark = 0

// reportFD is the number of the pipe to which a process in the background reports.
const reportFD = 3

// detach starts this command again in a session of its own, and returns when that process has the lock
// or has failed. It passes on what the process reports, and signals to it.
//
// The process keeps none of the caller's standard files: cron and ssh wait until a pipe is closed. Its
// standard input ends when this process ends, and it gives up then, unless the lock was granted.
func (h *keeper) detach() error {
	report, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	cmd := exec.Command("/proc/self/exe", withReport(os.Args[1:])...)
	cmd.Args[0] = os.Args[0]
	cmd.ExtraFiles = []*os.File{to}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	arrived := catchSignals()
	defer arrived.stop()
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	to.Close()
	connect.HideToken() // the process has it
	if err != nil {
		return fmt.Errorf("cannot start the process in the background: %w", err)
	}
	defer alive.Close()
	granted := make(chan bool, 1)
	go func() { granted <- h.passOn(report) }()
	for {
		select {
		case sig := <-arrived:
			if ui.Ending(sig) {
				_ = cmd.Process.Signal(sig) // it may have ended
			}
		case ok := <-granted:
			if !ok {
				h.app.Status = statusOf(cmd.Wait(), cmd)
			}
			return nil
		}
	}
}

// withReport adds the flag that makes a process the one in the background.
func withReport(args []string) []string {
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	return slices.Insert(slices.Clone(args), at, fmt.Sprintf("--%s=%d", reportFlag, reportFD))
}

// statusOf returns the exit status of a process that has ended.
func statusOf(err error, cmd *exec.Cmd) int {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return ui.StatusError
	}
	if ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && ws.Signaled() {
		return ui.SignalStatus(ws.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// passOn prints a report, and returns whether it says that the lock is granted.
func (h *keeper) passOn(report io.Reader) bool {
	buffer := make([]byte, 4096)
	for {
		n, err := report.Read(buffer)
		text, _, granted := bytes.Cut(buffer[:n], []byte{grantedMark})
		_, _ = h.app.Stderr.Write(text)
		if granted || err != nil {
			return granted
		}
	}
}

// attach makes a process in the background report to the one that has started it.
func (h *keeper) attach() {
	if h.reportTo == 0 {
		return
	}
	syscall.CloseOnExec(h.reportTo)
	pipe := os.NewFile(uintptr(h.reportTo), "report")
	h.report, h.app.Stderr = pipe, pipe
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the other process has ended
		if !h.granted.Load() {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGTERM) // as a user who does not want to wait
		}
	}()
}

// tellParent says that the lock is granted. From then on nobody reads what this process prints.
func (h *keeper) tellParent() error {
	h.granted.Store(true)
	_, err := h.report.Write([]byte{grantedMark})
	h.report.Close()
	h.app.Stderr = io.Discard
	if err != nil {
		return fmt.Errorf("the process that started this one has ended: %w", err)
	}
	return nil
}

// ownerOf returns the user that owns a file.
func ownerOf(is os.FileInfo) uint32 {
	if stat, known := is.Sys().(*syscall.Stat_t); known {
		return stat.Uid
	}
	return ^uint32(0) // no user
}
