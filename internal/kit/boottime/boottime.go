// Package boottime reads the clock that measures how long a client may rely on
// its holds. Nobody sets this clock, and unlike Go's monotonic clock it
// continues while the machine is suspended. Readings of different processes
// on one machine can be compared.
package boottime

import "time"

// Time is a reading: the time since the machine started.
type Time time.Duration

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Until returns the time left until t; it is negative once t has passed.
func Until(t Time) time.Duration { return t.Sub(Now()) }
