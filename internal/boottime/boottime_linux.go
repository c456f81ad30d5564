package boottime

import "golang.org/x/sys/unix"

// Now reads CLOCK_BOOTTIME.
func Now() Time {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		// Every kernel since 2.6.39 has the clock: failing here means that no
		// deadline can be trusted.
		panic("boottime: CLOCK_BOOTTIME: " + err.Error())
	}
	return Time(ts.Nano())
}
