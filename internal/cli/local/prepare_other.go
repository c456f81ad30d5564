//go:build !linux

package local

import (
	"os/exec"
	"syscall"
)

// Prepare does nothing where no signal tells of the death of a parent.
func Prepare(*exec.Cmd) {}

// wake has no use where servers are not stopped by signals.
const wake = syscall.SIGTERM
