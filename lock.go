package conclave

import (
	"context"
	"fmt"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Lock is a handle on a lock that is, or was, held. Its methods may be called
// by many goroutines at once.
type Lock struct{ hold hold }

// hold is what a handle holds: a *client.Hold, or a *client.NearHold.
type hold interface {
	Name() string
	Fence() uint64
	Floor() uint64
	Ended() error
	Context() context.Context
	Deadline() time.Duration
	TTL() time.Duration
	Renewed() <-chan struct{}
	Kept() client.Kept
	Release(ctx context.Context) error
	Discard(ctx context.Context) error
}

// nearLock is the handle on a lock that is held at the server in this process. All of it is one
// piece of memory.
type nearLock struct {
	lock Lock
	hold client.NearHold
}

// LockOption says how to lock. Without any, a lock excludes all others.
type LockOption interface{ ofLock(a *api.Acquire) }

type lockOption func(*api.Acquire)

func (set lockOption) ofLock(a *api.Acquire) { set(a) }

// LingerOption keeps the name closed after a hold: of a lock, or of a leadership. With Limit, only
// the place that was held stays closed. It cannot be combined with Shared, and only agreement
// does that, from level 5 on.
type LingerOption func(*api.Acquire)

func (set LingerOption) ofLock(a *api.Acquire)     { set(a) }
func (set LingerOption) ofCampaign(a *api.Acquire) { set(a) }

// AtLeast keeps the name closed until d after the grant, however the hold ends and whether its program
// still lives: what was done under it is not begun again within d. At most MaxLinger. A hold that
// lasts longer than d leaves nothing closed. The servers measure d. A change of their leader
// makes it longer, by the time without a leader and at most a minute, and never shorter.
func AtLeast(d time.Duration) LingerOption {
	return func(a *api.Acquire) { a.AtLeastNs = int64(d) }
}

// DelayAfterLoss keeps the name closed for d after a hold that was lost: that expired, or was
// dropped because its holder was asked to leave and did not. So what the last holder has under way
// can end before somebody else holds the name, as with the lock-delay of Consul. At most
// MaxLinger; 0 is the default. It does not replace a fence: see Lock.Fence.
func DelayAfterLoss(d time.Duration) LingerOption {
	return func(a *api.Acquire) { a.DelayAfterLossNs = int64(d) }
}

// Shared lets other shared holds of the same lock in beside this one: a lock for
// readers. Those who come wait behind those who wait, so neither readers nor
// writers starve.
func Shared() LockOption {
	return lockOption(func(a *api.Acquire) { a.Shared = true })
}

// Limit lets up to n hold the lock at a time: a semaphore. All who ask name the
// same n, of 1 to MaxLimit, while somebody holds.
func Limit(n uint32) LockOption {
	return lockOption(func(a *api.Acquire) { a.Limit = n })
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
	a := &api.Acquire{Class: api.Class_CLASS_LOCK, Name: name, Try: try}
	for _, option := range options {
		option.ofLock(a)
	}
	h, err := c.acquire(ctx, a)
	if err != nil {
		return nil, err
	}
	return &Lock{h}, nil
}

// lockNear returns a lock that the server in this process has granted at once, or nil: then
// the caller asks as any client does.
func (c *Client) lockNear(ctx context.Context, name string, options []LockOption) *Lock {
	if !c.conn.HasNear() || len(options) > 0 || ctx.Err() != nil || ValidateName(name) != nil {
		return nil
	}
	n := new(nearLock)
	if !c.conn.LockNear(ctx, name, &n.hold) {
		return nil
	}
	n.lock.hold = &n.hold
	return &n.lock
}

// acquire waits until a is granted.
func (c *Client) acquire(ctx context.Context, a *api.Acquire) (*client.Hold, error) {
	if err := validate(a); err != nil {
		return nil, err
	}
	h, err := c.conn.Acquire(ctx, a)
	if err != nil {
		return nil, acquireFailed(a, err)
	}
	return h, nil
}

// validate spares the servers what they would refuse.
func validate(a *api.Acquire) error {
	if err := ValidateName(a.GetName()); err != nil {
		return err
	}
	switch name, limit := a.GetName(), a.GetLimit(); {
	case limit > MaxLimit:
		return fmt.Errorf("conclave: lock %q: limit: %d: must be between 1 and %d", name, limit, MaxLimit)
	case limit > 1 && a.GetShared():
		return fmt.Errorf("conclave: lock %q: limit: %d: cannot be combined with Shared", name, limit)
	case a.GetPatienceNs() < 0 || a.GetPatienceNs() > int64(MaxTTL):
		return fmt.Errorf("conclave: election %q: patience: %v: must be between 0s and %v", name, time.Duration(a.GetPatienceNs()), MaxTTL)
	case a.GetAtLeastNs() < 0 || a.GetAtLeastNs() > int64(MaxLinger):
		return fmt.Errorf("conclave: %q: at least: %v: must be between 0s and %v", name, time.Duration(a.GetAtLeastNs()), MaxLinger)
	case a.GetDelayAfterLossNs() < 0 || a.GetDelayAfterLossNs() > int64(MaxLinger):
		return fmt.Errorf("conclave: %q: delay after loss: %v: must be between 0s and %v", name, time.Duration(a.GetDelayAfterLossNs()), MaxLinger)
	case a.GetShared() && a.GetAtLeastNs()+a.GetDelayAfterLossNs() > 0:
		return fmt.Errorf("conclave: lock %q: a shared hold has no place of its own that could stay closed: AtLeast and DelayAfterLoss cannot be combined with Shared", name)
	}
	return validateValue(a.GetName(), a.GetValue())
}

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.hold.Name() }

// Fence returns the number of this grant, which is larger than that of every
// earlier grant: send it along with each write, and Floor with it. Fence returns
// ErrLost once the deadline has passed, and ErrNotHeld after Unlock.
func (l *Lock) Fence() (uint64, error) {
	return numberOf(l.hold.Fence(), "lock", l.hold)
}

// Floor returns the smallest fence among the holders at the moment of this grant.
// Let the store remember the largest floor that it has seen, and refuse writes with
// a smaller fence: it then takes the writes of all who hold together, and refuses
// those who held before. For a lock that excludes all others the floor is the
// fence. Floor fails as Fence does.
func (l *Lock) Floor() (uint64, error) {
	return numberOf(l.hold.Floor(), "lock", l.hold)
}

// Context ends no later than the hold does: when the deadline passes or the
// server ends the session (context.Cause says ErrLost), when the holder is asked
// to leave (a *RevokedError: stop, then Unlock), and at the beginning of Unlock or
// Client.Close (ErrReleased). Its Err reads the clock. Its Deadline
// reports none, because renewals move it. Whoever waits for another lock under it is
// taken to keep this one meanwhile; see Keeping.
func (l *Lock) Context() context.Context { return l.hold.Context() }

// Deadline returns the reading of the clock of deadlines (CLOCK_BOOTTIME on
// Linux) before which the hold is certain, unless it is released. It never
// moves back.
func (l *Lock) Deadline() time.Duration { return l.hold.Deadline() }

// TTL returns how long the hold lasts at most if it is not renewed: Config.TTL, or the
// lease of a server, if an algorithm guards the lock and that is shorter (by default 1.2 s).
func (l *Lock) TTL() time.Duration { return l.hold.TTL() }

// Renewed returns a channel that receives a value after Deadline has moved.
// Several moves may be reported by one value.
func (l *Lock) Renewed() <-chan struct{} { return l.hold.Renewed() }

// Unlock ends Context and then gives the lock up. If ctx ends before the server answers,
// Unlock continues to send the release in the background, and the error wraps ctx.Err().
// Unlock returns ErrNotHeld if the lock was unlocked before or lost.
func (l *Lock) Unlock(ctx context.Context) error {
	return holdFailed("release", "lock", l.hold, l.hold.Release(ctx))
}

// Discard is like Unlock, for a lock that was not used: AtLeast then keeps nothing closed.
func (l *Lock) Discard(ctx context.Context) error {
	return holdFailed("release", "lock", l.hold, l.hold.Discard(ctx))
}
