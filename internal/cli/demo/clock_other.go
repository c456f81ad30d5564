//go:build !linux

package demo

import (
	"syscall"
	"time"
)

// clingSignal asks a worker to stay inside.
const clingSignal = syscall.Signal(0x1e)

// monotonic reads the wall clock, the only one here that processes share.
func monotonic() int64 { return time.Now().UnixNano() }
