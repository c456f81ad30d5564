package cli

import (
	"os"
	"syscall"
)

func signalStatus(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return StatusError
}
