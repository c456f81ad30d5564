package client

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/kit/boottime"
)

// lease has the deadline of a session: the servers cannot end the session before it. All
// goroutines of the program share it.
//
// Invariant: the deadline never moves back. Once a goroutine has seen that it passed,
// the lease is lost forever, whatever is answered later.
type lease struct {
	now func() boottime.Time

	mu    sync.Mutex // taken to move until or to set lost
	until atomic.Int64
	lost  atomic.Bool
}

func newLease(now func() boottime.Time, until boottime.Time) *lease {
	l := &lease{now: now}
	l.until.Store(int64(until))
	return l
}

// deadline returns the reading at which the lease ends unless it is extended.
func (l *lease) deadline() boottime.Time { return boottime.Time(l.until.Load()) }

// valid reports whether the deadline is ahead. It reads the clock.
func (l *lease) valid() bool { return l.validAt(l.now()) }

// validAt reports whether the deadline is ahead at now, which has just been read.
func (l *lease) validAt(now boottime.Time) bool {
	if l.lost.Load() {
		return false
	}
	return now < l.deadline() || l.recheck()
}

// recheck decides with mu locked, because the deadline may just have moved. All callers get the
// same answer from then on.
func (l *lease) recheck() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now() >= l.deadline() {
		l.lost.Store(true)
	}
	return !l.lost.Load()
}

// extend moves the deadline forward to until, and reports whether it moved. It
// does not if the deadline passed before, or is later already.
func (l *lease) extend(until boottime.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now() >= l.deadline() {
		l.lost.Store(true)
	}
	if l.lost.Load() || until <= l.deadline() {
		return false
	}
	l.until.Store(int64(until))
	return true
}

// lose ends the lease before its deadline.
func (l *lease) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost.Store(true)
}

// holdContext is the context of a handle. A timer ends it. But timers fire late on a busy machine,
// and stop while the machine is suspended. So Err reads the clock too, and ends the context if the
// deadline has passed.
type holdContext struct {
	context.Context // never ends by itself
	end             context.CancelCauseFunc
	lease           interface{ valid() bool }
	lost            error  // the cause if the deadline has passed
	keeps           []keep // the holds that a caller that waits with this context keeps
}

func newHoldContext(l interface{ valid() bool }, lost error) *holdContext {
	ctx, end := context.WithCancelCause(context.Background())
	return &holdContext{Context: ctx, end: end, lease: l, lost: lost}
}

// Value returns the holds that the caller keeps for keepsKey.
func (x *holdContext) Value(key any) any {
	if key == (keepsKey{}) {
		return x.keeps
	}
	return x.Context.Value(key)
}

// Err returns nil only if the deadline had not passed when Err was called.
func (x *holdContext) Err() error {
	if err := x.Context.Err(); err != nil {
		return err
	}
	if !x.lease.valid() {
		x.end(x.lost)
	}
	return x.Context.Err()
}
