package demo

import (
	"golang.org/x/sys/unix"
)

// clingSignal asks a worker to stay inside.
const clingSignal = unix.SIGUSR1

// monotonic reads CLOCK_MONOTONIC, which all processes of a machine share.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("demo: CLOCK_MONOTONIC: " + err.Error())
	}
	return ts.Nano()
}
