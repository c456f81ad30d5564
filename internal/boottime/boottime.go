// Package boottime reads the clock by which Conclave measures how long a
// client may believe that it holds something: one that nobody sets, and that
// goes on while the machine is suspended, which Go's own monotonic clock does
// not. Readings compare between processes of one machine.
package boottime

import "time"

// Time is a reading: the time since the machine started.
type Time time.Duration

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Until returns what is left until t; it is negative once t has passed.
func Until(t Time) time.Duration { return t.Sub(Now()) }
