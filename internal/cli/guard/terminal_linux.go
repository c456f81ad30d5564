package guard

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal of this process.
type terminal struct{ fd int }

// openTerminal returns nil if there is no controlling terminal.
func openTerminal() *terminal {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &terminal{fd}
}

func (t *terminal) close() { unix.Close(t.fd) }

// foreground returns the process group that has the terminal, or 0.
func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// give gives the terminal to a process group. The caller must be locked to its thread. A member of a
// background group may do so only while it blocks TTOU. The block must end with the call, because
// commands inherit it.
func (t *terminal) give(group int) bool {
	var block, old unix.Sigset_t
	block.Val[0] = 1 << (unix.SIGTTOU - 1) // 22: in the first word, be it of 32 or of 64 bits
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &block, &old); err != nil {
		return false
	}
	err := unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group)
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		panic("guard: sigprocmask: " + err.Error())
	}
	return err == nil
}

// Foreground reports whether this process's group has the controlling terminal.
func Foreground() bool {
	t := openTerminal()
	if t == nil {
		return false
	}
	defer t.close()
	return t.foreground() == unix.Getpgrp()
}

// byTerminal reports whether a signal that stopped a process is one with which a terminal suspends a
// job.
func byTerminal(sig syscall.Signal) bool {
	return sig == unix.SIGTSTP || sig == unix.SIGTTIN || sig == unix.SIGTTOU
}
