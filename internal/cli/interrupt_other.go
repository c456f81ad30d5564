//go:build !unix

package cli

import (
	"os"
	"syscall"
)

func share(syscall.Signal) {}

func yield(os.Signal) {}
