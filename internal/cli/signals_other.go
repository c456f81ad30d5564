//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// passed are the signals that this process forwards to a command.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM}

// ending reports whether a signal ends a process that only waits.
func ending(os.Signal) bool { return true }
