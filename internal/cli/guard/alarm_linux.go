package guard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// alarm is a timer on CLOCK_BOOTTIME. Go's own timers stop while the machine is suspended, and would
// fire late by that time.
type alarm struct {
	fd   int
	file *os.File
	// C receives a value at the set time. It may also receive a value for a time that was set
	// before, so the receiver must read the clock.
	C chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("guard: timerfd: %w", err)
	}
	a := &alarm{fd: fd, file: os.NewFile(uintptr(fd), "timerfd"), C: make(chan struct{}, 1)}
	go a.watch()
	return a, nil
}

func (a *alarm) watch() {
	var count [8]byte
	for {
		if _, err := a.file.Read(count[:]); err != nil {
			return
		}
		select {
		case a.C <- struct{}{}:
		default:
		}
	}
}

// set replaces the time of the alarm. A time in the past fires at once.
func (a *alarm) set(at boottime.Time) {
	ns := max(int64(at), 1) // zero would disarm
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(ns)}
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		// Only a wrong argument can cause it, and the guard cannot work without its timer.
		panic("guard: timerfd_settime: " + err.Error())
	}
}

func (a *alarm) close() { a.file.Close() }
