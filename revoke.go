package conclave

import (
	"context"
	"fmt"

	"github.com/conclave-io/conclave/service/api"
)

// MaxReason is the longest reason that servers take, in bytes.
const MaxReason = 256

// RevokeOption says whom to ask. Without any, all who hold are asked.
type RevokeOption struct{ set func(*api.Revoke) }

// OnlyFence asks only the hold with this fence, of several that share a lock; or
// makes sure that it is still the one that was looked at.
func OnlyFence(fence uint64) RevokeOption {
	return RevokeOption{func(r *api.Revoke) { r.Fence = fence }}
}

// Revoke asks the holders of a lock to leave, and says why: their Contexts end
// with a *RevokedError. Each holds until it has unlocked, or for one TTL of its
// session if it does not, so that nobody else enters while it may still be at
// work. Revoke returns the fence of a hold, or ErrNotFound if nobody holds.
func (c *Client) Revoke(ctx context.Context, name, reason string, options ...RevokeOption) (fence uint64, err error) {
	return c.revoke(ctx, "lock", revokeOf(api.Class_CLASS_LOCK, name, reason, options))
}

// RevokeElection is like Revoke, for the leader of an election.
func (c *Client) RevokeElection(ctx context.Context, name, reason string, options ...RevokeOption) (fence uint64, err error) {
	return c.revoke(ctx, "election", revokeOf(api.Class_CLASS_ELECTION, name, reason, options))
}

func revokeOf(class api.Class, name, reason string, options []RevokeOption) *api.Revoke {
	r := &api.Revoke{Class: class, Name: name, Reason: reason}
	for _, option := range options {
		option.set(r)
	}
	return r
}

func (c *Client) revoke(ctx context.Context, kind string, r *api.Revoke) (uint64, error) {
	name, reason := r.GetName(), r.GetReason()
	if err := ValidateName(name); err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: revoke %s %q: the reason has %d bytes; give at most %d", kind, name, len(reason), MaxReason)
	}
	message := &api.Request{Op: &api.Request_Revoke{Revoke: r}}
	for {
		s, err := c.opened(ctx, "revoke "+kind, name)
		if err != nil {
			return 0, err
		}
		done := make(chan outcome, 1)
		c.submit(s, &request{message: message, done: done})
		select {
		case o := <-done:
			switch {
			case o.err == errSessionGone:
				continue // asked again in a new session: to ask twice does no harm
			case o.err != nil:
				return 0, fmt.Errorf("conclave: revoke %s %q: %w", kind, name, o.err)
			case o.reply.GetCode() != api.Code_CODE_OK:
				return 0, refusal("revoke "+kind, name, o.reply)
			}
			return o.reply.GetFence(), nil
		case <-ctx.Done():
			return 0, c.interrupted(ctx, "revoke "+kind, name, false)
		}
	}
}
