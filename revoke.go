package conclave

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
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

func (c *Client) revoke(ctx context.Context, class string, r *api.Revoke) (uint64, error) {
	name, reason := r.GetName(), r.GetReason()
	if err := ValidateName(name); err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: revoke %s %q: reason: %d bytes: must have at most %d bytes", class, name, len(reason), MaxReason)
	}
	o := c.do(ctx, &line.Call{Op: &api.Request{Op: &api.Request_Revoke{Revoke: r}}})
	switch {
	case o.err != nil:
		return 0, c.failed(ctx, "revoke "+class, name, o)
	case o.reply.GetCode() != api.Code_CODE_OK:
		return 0, refusal("revoke "+class, name, o.reply)
	}
	return o.reply.GetFence(), nil
}

// EndSession ends a session of somebody else, by its public id, and says why. Its
// waits end at once. Its holders are asked to leave as by Revoke, and keep their holds
// until they have left, or for one TTL. Meanwhile the session acquires nothing more.
// EndSession returns how many holds the session had to release, or ErrNotFound if
// there is no such session. Without a deadline in ctx it tries for 10 seconds.
func (c *Client) EndSession(ctx context.Context, id, reason string) (holds int, err error) {
	raw, err := parsePublicID(id)
	if err != nil {
		return 0, err
	}
	if len(reason) > MaxReason {
		return 0, fmt.Errorf("conclave: end session: reason: %d bytes: must have at most %d bytes", len(reason), MaxReason)
	}
	var missing error
	err = c.ask(ctx, "end session "+id, func(ctx context.Context, server api.ConclaveClient) error {
		answer, err := server.EndSession(ctx, &api.EndSessionRequest{Id: raw, Reason: reason})
		if status.Code(err) == codes.NotFound {
			missing = &RequestError{Op: "end session", Name: id, Code: api.Code_CODE_NOT_FOUND, Message: status.Convert(err).Message()}
			return nil
		}
		holds = int(answer.GetHolds())
		return err
	})
	return holds, cmp.Or(err, missing)
}

func parsePublicID(id string) ([]byte, error) {
	digits, public := strings.CutPrefix(id, publicPrefix)
	raw, err := hex.DecodeString(digits)
	if !public || err != nil || len(raw) != 16 {
		return nil, fmt.Errorf("conclave: session: %.40q: expected a public id, %s and 32 hexadecimal digits", id, publicPrefix)
	}
	return raw, nil
}
