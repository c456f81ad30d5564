package ui

import (
	"os"
	"syscall"
)

// SignalStatus returns the exit status of a command that a signal ended, as shells have it.
func SignalStatus(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return StatusError
}
