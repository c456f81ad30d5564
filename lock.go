package conclave

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/api"
)

// Lock is a handle on a lock that is, or was, held. Its methods may be called
// by many goroutines at once.
type Lock struct {
	h    *hold
	near *nearHold // or it is held at the server in this process
}

// LockOption says how to lock. Without any, a lock excludes all others.
type LockOption struct{ set func(*api.Acquire) }

// Shared lets other shared holds of the same lock in beside this one: a lock for
// readers. Those who come wait behind those who wait, so neither readers nor
// writers starve.
func Shared() LockOption {
	return LockOption{func(a *api.Acquire) { a.Shared = true }}
}

// Limit lets up to n hold the lock at a time: a semaphore. All who ask name the
// same n, of 1 to MaxLimit, while somebody holds.
func Limit(n uint32) LockOption {
	return LockOption{func(a *api.Acquire) { a.Limit = n }}
}

// Lock waits in the lock's queue until the lock is granted, and returns a
// handle on it. Two calls for one name exclude each other even within one
// Client. If ctx ends first, Lock leaves the queue and the error wraps
// ctx.Err(); it then holds nothing.
//
// The place in the queue survives reconnects and changes of leader. If the
// session is lost while Lock waits, Lock queues again in a new session, at the
// end.
//
// A call that would complete a deadlock fails at once with a *DeadlockError, and
// errors.Is(err, ErrDeadlock): somebody in the way waits for what this caller keeps. A
// caller keeps those holds whose Context ctx descends from; see Keeping. One that keeps
// nothing is never refused.
func (c *Client) Lock(ctx context.Context, name string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, name, false, options)
}

// TryLock is like Lock but does not wait: if the lock is held, the error is a
// *HeldError that names the holder, and errors.Is(err, ErrHeld).
func (c *Client) TryLock(ctx context.Context, name string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, name, true, options)
}

func (c *Client) lock(ctx context.Context, name string, try bool, options []LockOption) (*Lock, error) {
	if l := c.lockNear(ctx, name, options); l != nil {
		return l, nil
	}
	h, err := c.acquire(ctx, lockOf(name, try, options))
	if err != nil {
		return nil, err
	}
	return &Lock{h: h}, nil
}

// Name returns the name of the lock.
func (l *Lock) Name() string {
	if l.near != nil {
		return l.near.hold.Name
	}
	return l.h.name
}

// Fence returns the number of this grant, which is larger than that of every
// earlier grant: send it along with each write, and Floor with it. Fence returns
// ErrLost once the deadline has passed, and ErrNotHeld after Unlock.
func (l *Lock) Fence() (uint64, error) {
	if l.near != nil {
		return l.near.number(l.near.hold.Fence)
	}
	return l.h.number(l.h.fence)
}

// Floor returns the smallest fence among the holders at the moment of this grant.
// Let the store remember the largest floor that it has seen, and refuse writes with
// a smaller fence: it then takes the writes of all who hold together, and refuses
// those who held before. For a lock that excludes all others the floor is the
// fence. Floor fails as Fence does.
func (l *Lock) Floor() (uint64, error) {
	if l.near != nil {
		return l.near.number(l.near.hold.Floor)
	}
	return l.h.number(l.h.floor)
}

// Context ends no later than the hold does: when the deadline passes or the
// server ends the session (context.Cause says ErrLost), when the holder is asked
// to leave (a *RevokedError: stop, then Unlock), and at the beginning of Unlock or
// Client.Close (ErrReleased). Its Err reads the clock. Its Deadline
// reports none, because renewals move it. Whoever waits for another lock under it is
// taken to keep this one meanwhile; see Keeping.
func (l *Lock) Context() context.Context {
	if l.near != nil {
		return l.near.watch().ctx
	}
	return l.h.ctx
}

// Deadline returns the reading of the clock of deadlines (CLOCK_BOOTTIME on
// Linux) before which the hold is certain, unless it is released. It never
// moves back.
func (l *Lock) Deadline() time.Duration {
	if l.near != nil {
		return l.near.deadline()
	}
	return l.h.deadline()
}

// TTL returns how long the hold lasts at most if it is not renewed: Config.TTL, or the
// lease of a server, if an algorithm guards the lock and that is shorter (by default 1.2 s).
func (l *Lock) TTL() time.Duration {
	if l.near != nil {
		return l.near.ttl()
	}
	return l.h.ttl
}

// Renewed returns a channel that receives a value after Deadline has moved.
// Several moves may be reported by one value.
func (l *Lock) Renewed() <-chan struct{} {
	if l.near != nil {
		return l.near.watch().moved
	}
	return l.h.renewed()
}

// Unlock ends Context and then gives the lock up. If ctx ends before the server answers,
// Unlock continues to send the release in the background, and the error wraps ctx.Err().
// Unlock returns ErrNotHeld if the lock was unlocked before or lost.
func (l *Lock) Unlock(ctx context.Context) error {
	if l.near != nil {
		return l.near.release()
	}
	return l.h.release(ctx)
}
