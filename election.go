package conclave

import (
	"context"
	"time"
)

// Leadership is a handle on an election that is, or was, won. Its methods may
// be called by many goroutines at once.
type Leadership struct{ h *hold }

// Campaign waits until this candidate is elected, and returns a handle on its
// leadership. Candidates are elected in the order in which they came. Observers
// see value, of at most 64 KiB. As for Lock, the place in the queue survives
// reconnects and changes of the servers' leader, and a candidate whose session
// is lost queues again at the end.
func (c *Client) Campaign(ctx context.Context, name string, value []byte) (*Leadership, error) {
	h, err := c.acquire(ctx, electionOf(name, value))
	if err != nil {
		return nil, err
	}
	return &Leadership{h}, nil
}

// Name returns the name of the election.
func (l *Leadership) Name() string { return l.h.name }

// Fence is as Lock.Fence: larger than that of every earlier leader.
func (l *Leadership) Fence() (uint64, error) { return l.h.fenced() }

// Context is as Lock.Context: it ends before anyone else can lead.
func (l *Leadership) Context() context.Context { return l.h.ctx }

// Deadline is as Lock.Deadline.
func (l *Leadership) Deadline() time.Duration { return l.h.deadline() }

// Renewed is as Lock.Renewed.
func (l *Leadership) Renewed() <-chan struct{} { return l.h.renewed() }

// Resign ends Context and then gives the leadership up, as Lock.Unlock does.
func (l *Leadership) Resign(ctx context.Context) error { return l.h.release(ctx) }

// SetValue changes what observers see of this leader. If ctx ends before the
// server answers, the change may or may not be made. SetValue returns
// ErrNotHeld if the leadership was given up or lost.
func (l *Leadership) SetValue(ctx context.Context, value []byte) error { return l.h.update(ctx, value) }
