package admin

import (
	"context"
	"fmt"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
)

// MaxReason is the longest reason that servers take, in bytes.
const MaxReason = 256

// RevokeOption selects the holders to ask. Without any, all who hold are asked.
type RevokeOption struct{ set func(*api.Revoke) }

// OnlyFence asks only the hold with this fence, of several that share a lock; or
// makes sure that it is still the one that was looked at.
func OnlyFence(fence uint64) RevokeOption {
	return RevokeOption{func(r *api.Revoke) { r.Fence = fence }}
}

// Revoke asks the holders of a lock to leave, and says why: their Contexts end
// with a *conclave.RevokedError. Each holds until it has unlocked, or for one TTL of its
// session if it does not, so that nobody else enters while it may still be at
// work. Revoke returns the fence of a hold, or conclave.ErrNotFound if nobody holds.
func (a *Admin) Revoke(ctx context.Context, name, reason string, options ...RevokeOption) (fence uint64, err error) {
	return a.revoke(ctx, "lock", revokeOf(api.Class_CLASS_LOCK, name, reason, options))
}

// RevokeElection is like Revoke, for the leader of an election.
func (a *Admin) RevokeElection(ctx context.Context, name, reason string, options ...RevokeOption) (fence uint64, err error) {
	return a.revoke(ctx, "election", revokeOf(api.Class_CLASS_ELECTION, name, reason, options))
}

func revokeOf(class api.Class, name, reason string, options []RevokeOption) *api.Revoke {
	r := &api.Revoke{Class: class, Name: name, Reason: reason}
	for _, option := range options {
		option.set(r)
	}
	return r
}

func (a *Admin) revoke(ctx context.Context, class string, r *api.Revoke) (uint64, error) {
	name, reason := r.GetName(), r.GetReason()
	if err := conclave.ValidateName(name); err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: revoke %s %q: reason: %d bytes: must have at most %d bytes", class, name, len(reason), MaxReason)
	}
	reply, err := a.conn.Do(ctx, &api.Request{Op: &api.Request_Revoke{Revoke: r}})
	return reply.GetFence(), a.conn.Failed("revoke "+class, name, err)
}
