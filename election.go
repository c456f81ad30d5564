package conclave

import (
	"context"
	"fmt"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client"
)

// Leadership is a handle on an election that is, or was, won. Its methods may
// be called by many goroutines at once.
type Leadership struct{ hold *client.Hold }

// CampaignOption says how to campaign.
type CampaignOption interface{ ofCampaign(a *api.Acquire) }

type campaignOption func(*api.Acquire)

func (set campaignOption) ofCampaign(a *api.Acquire) { set(a) }

// Priority puts this candidate before those of lower priority that wait. The
// default is 0.
func Priority(p int64) CampaignOption {
	return campaignOption(func(a *api.Acquire) { a.Priority = p })
}

// Patience makes this candidate replace a leader of lower priority. When the candidate
// has waited, and the leader has led, for the time d, the leader is asked to leave. A
// candidate that fails more often than once in d never replaces the leader. At most 1 h.
// The default, 0, means never.
func Patience(d time.Duration) CampaignOption {
	return campaignOption(func(a *api.Acquire) { a.PatienceNs = int64(d) })
}

// Campaign waits until this candidate is elected, and returns a handle on its
// leadership. Candidates are elected by priority, and in the order in which they
// came if that is equal. Observers
// see value, of at most 64 KiB. As for Lock, the place in the queue survives
// reconnects and changes of the servers' leader, and a candidate whose session
// is lost queues again at the end. A call that would complete a deadlock fails, as for
// Lock.
func (c *Client) Campaign(ctx context.Context, name string, value []byte, options ...CampaignOption) (*Leadership, error) {
	return c.campaign(ctx, electionOf(name, value, options))
}

// TryCampaign is like Campaign but does not wait: if somebody leads, the error is
// a *HeldError that names the leader, and errors.Is(err, ErrHeld).
func (c *Client) TryCampaign(ctx context.Context, name string, value []byte, options ...CampaignOption) (*Leadership, error) {
	a := electionOf(name, value, options)
	a.Try = true
	return c.campaign(ctx, a)
}

func (c *Client) campaign(ctx context.Context, a *api.Acquire) (*Leadership, error) {
	h, err := c.acquire(ctx, a)
	if err != nil {
		return nil, err
	}
	return &Leadership{h}, nil
}

func electionOf(name string, value []byte, options []CampaignOption) *api.Acquire {
	a := &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: name, Value: value}
	for _, option := range options {
		option.ofCampaign(a)
	}
	return a
}

func validateValue(name string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("conclave: election %q: value: %d bytes: must have at most %d bytes", name, len(value), MaxValue)
	}
	return nil
}

// Name returns the name of the election.
func (l *Leadership) Name() string { return l.hold.Name() }

// Fence is as Lock.Fence: larger than that of every earlier leader.
func (l *Leadership) Fence() (uint64, error) { return l.number(l.hold.Fence()) }

// Floor is as Lock.Floor. One leads at a time, so it is the fence.
func (l *Leadership) Floor() (uint64, error) { return l.number(l.hold.Floor()) }

// number returns a number of the grant while it is held.
func (l *Leadership) number(n uint64) (uint64, error) { return numberOf(n, "election", l.hold) }

// Context is as Lock.Context: it ends before anyone else can lead.
func (l *Leadership) Context() context.Context { return l.hold.Context() }

// Deadline is as Lock.Deadline.
func (l *Leadership) Deadline() time.Duration { return l.hold.Deadline() }

// TTL is as Lock.TTL.
func (l *Leadership) TTL() time.Duration { return l.hold.TTL() }

// Renewed is as Lock.Renewed.
func (l *Leadership) Renewed() <-chan struct{} { return l.hold.Renewed() }

// Resign ends Context and then gives the leadership up, as Lock.Unlock does.
func (l *Leadership) Resign(ctx context.Context) error {
	return holdFailed("release", "election", l.hold, l.hold.Release(ctx))
}

// Discard is as Lock.Discard.
func (l *Leadership) Discard(ctx context.Context) error {
	return holdFailed("release", "election", l.hold, l.hold.Discard(ctx))
}

// Transfer hands the leadership to the candidate that campaigns with the given
// value, or whose session has that id: it ends Context and gives the leadership
// up, so that nobody leads before this leader has stopped. Other candidates keep
// their places. If no such candidate waits the error is ErrNotFound, and this
// leader continues to lead. After a leadership with AtLeast, the candidate leads when its time is
// over.
func (l *Leadership) Transfer(ctx context.Context, to string) error {
	if err := l.hold.Transfer(ctx, to); err != nil {
		return holdFailed("transfer", "election", l.hold, err)
	}
	return l.Resign(ctx)
}

// SetValue changes what observers see of this leader. If ctx ends before the
// server answers, the change may or may not be made. SetValue returns
// ErrNotHeld if the leadership was given up or lost.
func (l *Leadership) SetValue(ctx context.Context, value []byte) error {
	if err := validateValue(l.hold.Name(), value); err != nil {
		return err
	}
	return holdFailed("update", "election", l.hold, l.hold.Update(ctx, value))
}
