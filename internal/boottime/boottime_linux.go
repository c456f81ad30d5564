package boottime

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_BOOTTIME. The call never blocks, so it bypasses Go's scheduler, which saves a
// third of the time.
func Now() Time {
	var ts unix.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0)
	if failed != 0 {
		// Every kernel since 2.6.39 has the clock. If this fails, no deadline can be
		// trusted.
		panic("boottime: CLOCK_BOOTTIME: " + failed.Error())
	}
	return Time(ts.Nano())
}
