//go:build !unix

package wrap

import (
	"os"
	"syscall"
)

func share(syscall.Signal) {}

func yield(os.Signal) {}
