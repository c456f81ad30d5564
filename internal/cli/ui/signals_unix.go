//go:build unix

package ui

import (
	"os"
	"syscall"
)

// Passed are the signals that this process forwards to a command.
var Passed = []os.Signal{
	syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// Ending reports whether a signal ends a process that only waits.
func Ending(sig os.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}
