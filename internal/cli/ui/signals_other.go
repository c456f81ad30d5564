//go:build !unix

package ui

import (
	"os"
	"syscall"
)

// Passed are the signals that this process forwards to a command.
var Passed = []os.Signal{os.Interrupt, syscall.SIGTERM}

// Ending reports whether a signal ends a process that only waits.
func Ending(os.Signal) bool { return true }
