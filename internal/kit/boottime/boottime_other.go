//go:build !linux

package boottime

import "time"

var start = time.Now()

// Now reads Go's monotonic clock, which on some systems stops while the machine is
// suspended. Readings of different processes cannot be compared here.
func Now() Time { return Time(time.Since(start)) }
