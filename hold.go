package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

// hold is what a handle holds, or held: the grant of one request to acquire.
type hold struct {
	client *Client
	call   *line.Call // the request, by which the line knows the hold
	class  string     // "lock" or "election", for errors
	name   string
	fence  uint64
	floor  uint64
	lease  *lease
	ttl    time.Duration
	ctx    *holdContext
	moved  chan struct{}
	// released says that it was given up.
	released atomic.Bool
}

func newHold(c *Client, call *line.Call, a *acquisition, l *lease, grant *api.Reply) *hold {
	h := &hold{
		client: c, call: call, class: a.class, name: a.message.GetName(), fence: grant.GetFence(), floor: grant.GetFloor(),
		lease: l, ttl: time.Duration(call.Session().Span()), ctx: newHoldContext(l), moved: make(chan struct{}, 1),
	}
	h.ctx.keeps = append(slices.Clip(a.keeps), keep{h.kept(), h.ctx})
	return h
}

// acquisition is what a call wants to acquire.
type acquisition struct {
	class   string
	message *api.Acquire
	keeps   []keep // what the caller keeps while it waits
}

func lockOf(name string, try bool, options []LockOption) acquisition {
	a := &api.Acquire{Class: api.Class_CLASS_LOCK, Name: name, Try: try}
	for _, option := range options {
		option.set(a)
	}
	return acquisition{class: "lock", message: a}
}

func electionOf(name string, value []byte, options []CampaignOption) acquisition {
	a := &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: name, Value: value}
	for _, option := range options {
		option.set(a)
	}
	return acquisition{class: "election", message: a}
}

// validate spares the servers what they would refuse.
func (a acquisition) validate() error {
	if err := ValidateName(a.message.GetName()); err != nil {
		return err
	}
	switch name, limit := a.message.GetName(), a.message.GetLimit(); {
	case limit > MaxLimit:
		return fmt.Errorf("conclave: lock %q: limit: %d: must be between 1 and %d", name, limit, MaxLimit)
	case limit > 1 && a.message.GetShared():
		return fmt.Errorf("conclave: lock %q: limit: %d: cannot be combined with Shared", name, limit)
	case a.message.GetPatienceNs() < 0 || a.message.GetPatienceNs() > int64(MaxTTL):
		return fmt.Errorf("conclave: election %q: patience: %v: must be between 0s and %v", name, time.Duration(a.message.GetPatienceNs()), MaxTTL)
	}
	return validateValue(a.message.GetName(), a.message.GetValue())
}

func validateValue(name string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("conclave: election %q: value: %d bytes: must have at most %d bytes", name, len(value), MaxValue)
	}
	return nil
}

// acquire waits until a is granted. If the session is lost before the caller has its
// handle, acquire begins again: a grant proves nothing about the deadline, since it may
// have been long on its way.
func (c *Client) acquire(ctx context.Context, a acquisition) (*hold, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	a.keeps = keepsOf(ctx)
	a.message.Keeps = c.messageOf(a.keeps)
	for {
		call := &line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a.message}}, Data: &pending{acquisition: &a}}
		o := c.do(ctx, call)
		switch {
		case o.hold != nil && ctx.Err() != nil:
			c.post(line.Input{Kind: line.Withdraw, Call: call})
			return nil, interrupted(ctx, a.class, a.message.GetName(), o)
		case o.hold != nil && !o.hold.lease.valid():
			continue
		case o.hold != nil:
			return o.hold, nil
		case o.reply.GetCode() == api.Code_CODE_HELD:
			election := a.message.GetClass() == api.Class_CLASS_ELECTION
			return nil, &HeldError{Name: a.message.GetName(), Holder: holderOf(o.reply.GetHolder()), election: election}
		case o.reply.GetCode() == api.Code_CODE_MOVED:
			return nil, &GuardedError{Name: a.message.GetName(), Prefix: o.reply.GetGuard().GetPrefix(), Algorithm: o.reply.GetGuard().GetAlgorithm()}
		case o.reply.GetCode() == api.Code_CODE_DEADLOCK:
			return nil, deadlockOf(a.message, o.reply)
		case o.reply != nil:
			return nil, refusal(a.class, a.message.GetName(), o.reply)
		}
		return nil, c.failed(ctx, a.class, a.message.GetName(), o)
	}
}

func (h *hold) deadline() time.Duration { return time.Duration(h.lease.deadline()) }

func (h *hold) renewed() <-chan struct{} { return h.moved }

// number returns a number of the grant while it is held.
func (h *hold) number(n uint64) (uint64, error) {
	if h.ctx.Err() == nil {
		return n, nil
	}
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return 0, fmt.Errorf("conclave: %s %q: %w", h.class, h.name, cause)
	}
	return 0, h.notHeld()
}

// notHeld says why a handle holds nothing any more.
func (h *hold) notHeld() error {
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return fmt.Errorf("conclave: %s %q: %w: %w", h.class, h.name, ErrNotHeld, cause)
	}
	return fmt.Errorf("conclave: %s %q: %w: it was released before", h.class, h.name, ErrNotHeld)
}

// release ends the context, and only then lets the servers know.
func (h *hold) release(ctx context.Context) error {
	if !h.giveUp() {
		return h.notHeld()
	}
	h.ctx.end(ErrReleased)
	o, err := h.change(ctx, "release", &api.Request{Op: &api.Request_Release{Release: &api.Release{}}})
	if err != nil {
		return err
	}
	switch code := o.reply.GetCode(); {
	case o.err == line.ErrSessionGone || code == api.Code_CODE_NOT_HELD:
		return fmt.Errorf("conclave: %s %q: %w: its session ended before the release", h.class, h.name, ErrNotHeld)
	case o.err == ErrClosed || code == api.Code_CODE_OK || code == api.Code_CODE_STALE:
		return nil // closing the session releases as well
	default:
		return refusal("release "+h.class, h.name, o.reply)
	}
}

// giveUp reports whether the hold was held until now. One whose holder is asked
// to leave is, until it is given up, or lost as any other.
func (h *hold) giveUp() bool {
	held := h.ctx.Err() == nil || errors.Is(context.Cause(h.ctx), ErrRevoked) && h.lease.valid()
	return held && !h.released.Swap(true)
}

// change has a request about the hold carried out. If ctx ends first, the request
// continues in the background.
func (h *hold) change(ctx context.Context, op string, message *api.Request) (outcome, error) {
	o := h.client.do(ctx, &line.Call{Of: h.call, Op: message})
	if errors.Is(o.err, line.ErrWithdrawn) {
		return outcome{}, interrupted(ctx, op+" "+h.class, h.name, o)
	}
	return o, nil
}

// alter has a request about a hold carried out that is held, and reports its failure. The codes
// in fine are successes.
func (h *hold) alter(ctx context.Context, op string, message *api.Request, fine ...api.Code) error {
	if h.ctx.Err() != nil {
		return h.notHeld()
	}
	o, err := h.change(ctx, op, message)
	if err != nil {
		return err
	}
	switch code := o.reply.GetCode(); {
	case o.err != nil || code == api.Code_CODE_NOT_HELD:
		return h.notHeld()
	case !slices.Contains(fine, code):
		return refusal(op+" "+h.class, h.name, o.reply)
	}
	return nil
}

func (h *hold) update(ctx context.Context, value []byte) error {
	if err := validateValue(h.name, value); err != nil {
		return err
	}
	return h.alter(ctx, "update", &api.Request{Op: &api.Request_Update{Update: &api.Update{Value: value}}}, api.Code_CODE_OK)
}

// transfer names the candidate that is to lead next, then gives the leadership
// up. The servers ask this leader to leave, so nobody leads before it has.
func (h *hold) transfer(ctx context.Context, to string) error {
	message := &api.Request{Op: &api.Request_Transfer{Transfer: &api.Transfer{To: []byte(to)}}}
	if err := h.alter(ctx, "transfer", message, api.Code_CODE_OK, api.Code_CODE_STALE); err != nil {
		return err
	}
	return h.release(ctx)
}
