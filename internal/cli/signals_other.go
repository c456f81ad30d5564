//go:build !unix

package cli

import (
	"os"
	"syscall"
)

// passed are the signals that a command gets which this process gets.
var passed = []os.Signal{os.Interrupt, syscall.SIGTERM}

// ending says whether a signal ends a process that only waits.
func ending(os.Signal) bool { return true }

func share(syscall.Signal) {}

func yield(os.Signal) {}
