//go:build unix && !linux

package guard

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is the process group of a command, and the terminal that it takes from the caller's group.
type group struct {
	tty        *os.File // nil unless the command gets the terminal
	foreground bool
}

// ownGroup puts the command into a process group of its own, which gets the
// terminal if the caller's group has it.
func ownGroup(cmd *exec.Cmd, terminal bool) group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !terminal {
		return group{}
	}
	tty := foregroundTerminal()
	if tty == nil {
		return group{}
	}
	cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(tty.Fd())
	return group{tty, true}
}

// foregroundTerminal returns the controlling terminal if this process's group
// has it, or nil.
func foregroundTerminal() *os.File {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	if has, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP); err != nil || has != unix.Getpgrp() {
		tty.Close()
		return nil
	}
	return tty
}

// Foreground reports whether this process's group has the controlling terminal.
func Foreground() bool {
	tty := foregroundTerminal()
	if tty == nil {
		return false
	}
	tty.Close()
	return true
}

// start ignores TTOU from the moment at which the command takes the terminal until the command ends, so
// that restore can take the terminal back.
func (g group) start(cmd *exec.Cmd) error {
	if g.foreground {
		signal.Ignore(unix.SIGTTOU)
	}
	err := cmd.Start()
	if err != nil {
		g.restore()
	}
	return err
}

func (g group) restore() {
	if g.tty == nil {
		return
	}
	_ = unix.IoctlSetPointerInt(int(g.tty.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(unix.SIGTTOU)
	g.tty.Close()
}

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) { _ = unix.Kill(-cmd.Process.Pid, sig) }

// groupLeft reports whether processes of the command's group are left.
func groupLeft(cmd *exec.Cmd) bool { return unix.Kill(-cmd.Process.Pid, 0) != unix.ESRCH }

func statusOf(state *os.ProcessState) (int, syscall.Signal) {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return statusSignal + int(ws.Signal()), ws.Signal()
	}
	return state.ExitCode(), 0
}
