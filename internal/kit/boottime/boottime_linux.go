package boottime

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Now reads CLOCK_BOOTTIME, but seldom by a system call, which costs as much as twenty readings
// of Go's clocks. It adds to Go's monotonic clock the time for which the machine has been
// suspended since it started. A suspension moves the wall clock against the monotonic clock, so
// it is noticed by the next reading.
func Now() Time { return boot.now() }

const (
	// tolerance is how far the wall clock may move against the monotonic clock before the
	// offset is measured again. They are read one after the other.
	tolerance = time.Millisecond
	// fresh is how long an offset is used if the wall clock stands still against the
	// monotonic clock. It also does so if somebody sets it back by exactly the time of a
	// suspension.
	fresh = 10 * time.Millisecond
	// narrow is how long the measurement of an offset may take, and so its error. A measurement
	// makes this many attempts at most; where clocks are slower, the error is larger.
	narrow   = 100 * time.Microsecond
	attempts = 16
)

// clock computes CLOCK_BOOTTIME from the monotonic clock and an offset.
type clock struct {
	last   atomic.Pointer[offset]
	read   func() (monotonic, wall int64)
	system func() int64
}

// offset is one measurement, in nanoseconds.
type offset struct {
	at   int64 // when, by the monotonic clock
	wall int64 // the wall clock minus the monotonic clock
	boot int64 // CLOCK_BOOTTIME minus the monotonic clock, at least
}

var boot = newClock(readGo(), readSystem)

func newClock(read func() (monotonic, wall int64), system func() int64) *clock {
	c := &clock{read: read, system: system}
	c.last.Store(c.measure(nil))
	return c
}

func (c *clock) now() Time {
	last := c.last.Load()
	monotonic, wall := c.read()
	moved := wall - monotonic - last.wall
	if monotonic-last.at >= int64(fresh) || moved <= -int64(tolerance) || moved >= int64(tolerance) {
		c.last.CompareAndSwap(last, c.measure(last)) // or another goroutine has measured it
		last = c.last.Load()
		monotonic, _ = c.read()
	}
	return Time(monotonic + last.boot)
}

// measure returns a new offset. It is never smaller than the last one, so that the clock does not
// go back: the true one only grows, and every measurement is a lower bound of it. Of attempts
// during which the processor was taken away, the shortest counts.
func (c *clock) measure(last *offset) *offset {
	var o offset
	for took, attempt := int64(math.MaxInt64), 0; took >= int64(narrow) && attempt < attempts; attempt++ {
		before, wall := c.read()
		system := c.system()
		after, _ := c.read()
		if after-before < took {
			took, o = after-before, offset{at: before, wall: wall - before, boot: system - after}
		}
	}
	if last != nil {
		o.boot = max(o.boot, last.boot)
	}
	return &o
}

// readGo returns the function that reads Go's clocks, both at once.
func readGo() func() (monotonic, wall int64) {
	base := time.Now()
	return func() (monotonic, wall int64) {
		t := time.Now()
		return int64(t.Sub(base)), t.UnixNano()
	}
}

// readSystem asks the kernel. The call never blocks, so it bypasses Go's scheduler, which saves a
// third of the time.
func readSystem() int64 {
	var ts unix.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0)
	if failed != 0 {
		// Every kernel since 2.6.39 has the clock. If this fails, no deadline can be
		// trusted.
		panic("boottime: CLOCK_BOOTTIME: " + failed.Error())
	}
	return ts.Nano()
}
