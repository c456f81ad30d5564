package conclave

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/conclave-io/conclave/service/api"
)

// hold is what a handle holds, or held: the grant of one request to acquire.
type hold struct {
	client  *Client
	session *session
	// sequence is that of the request to acquire, by which the servers know
	// the hold.
	sequence uint64
	kind     string // "lock" or "election", for errors
	name     string
	fence    uint64
	floor    uint64
	ctx      *holdContext
	moved    chan struct{}
	released bool // guarded by client.mu
}

// acquisition is what a call wants to acquire.
type acquisition struct {
	kind    string
	message *api.Acquire
}

func lockOf(name string, try bool, options []LockOption) acquisition {
	a := &api.Acquire{Class: api.Class_CLASS_LOCK, Name: name, Try: try}
	for _, option := range options {
		option.set(a)
	}
	return acquisition{"lock", a}
}

func electionOf(name string, value []byte, options []CampaignOption) acquisition {
	a := &api.Acquire{Class: api.Class_CLASS_ELECTION, Name: name, Value: value}
	for _, option := range options {
		option.set(a)
	}
	return acquisition{"election", a}
}

func releaseOf(hold uint64) *api.Request {
	return &api.Request{Op: &api.Request_Release{Release: &api.Release{Hold: hold}}}
}

// validate spares the servers what they would refuse.
func (a acquisition) validate() error {
	if err := ValidateName(a.message.GetName()); err != nil {
		return err
	}
	switch name, limit := a.message.GetName(), a.message.GetLimit(); {
	case limit > MaxLimit:
		return fmt.Errorf("conclave: lock %q: the limit is %d; give 1 to %d", name, limit, MaxLimit)
	case limit > 1 && a.message.GetShared():
		return fmt.Errorf("conclave: lock %q: it is shared and has the limit %d; give one of them", name, limit)
	case a.message.GetPatienceNs() < 0 || a.message.GetPatienceNs() > int64(MaxTTL):
		return fmt.Errorf("conclave: election %q: the patience is %v; give 0 to %v", name, time.Duration(a.message.GetPatienceNs()), MaxTTL)
	}
	return validateValue(a.message.GetName(), a.message.GetValue())
}

func validateValue(name string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("conclave: election %q: the value has %d bytes; give at most %d", name, len(value), MaxValue)
	}
	return nil
}

// acquire waits until a is granted. Each round is one session: if it is lost
// before the grant has become a handle, the next one starts over.
func (c *Client) acquire(ctx context.Context, a acquisition) (*hold, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	for {
		s, err := c.opened(ctx, a.kind, a.message.GetName())
		if err != nil {
			return nil, err
		}
		done := make(chan outcome, 1)
		r := &request{message: &api.Request{Op: &api.Request_Acquire{Acquire: a.message}}, done: done}
		c.submit(s, r)
		select {
		case o := <-done:
			if h, err, settled := c.settle(ctx, a, r, o); settled {
				return h, err
			}
		case <-ctx.Done():
			c.abandon(r)
			return nil, interrupted(ctx, a.kind, a.message.GetName(), c.trouble())
		}
	}
}

// settle turns the outcome of a request to acquire into that of the call. It is
// not settled if the call has to start over in another session.
func (c *Client) settle(ctx context.Context, a acquisition, r *request, o outcome) (h *hold, err error, settled bool) {
	switch code := o.reply.GetCode(); {
	case o.err == errSessionGone || code == api.Code_CODE_STALE:
		return nil, nil, false
	case o.err != nil:
		return nil, fmt.Errorf("conclave: %s %q: %w", a.kind, a.message.GetName(), o.err), true
	case code == api.Code_CODE_OK && ctx.Err() != nil:
		c.abandon(r)
		return nil, interrupted(ctx, a.kind, a.message.GetName(), ""), true
	case code == api.Code_CODE_OK:
		h = c.handOut(a, r, o.reply)
		return h, nil, h != nil
	case code == api.Code_CODE_HELD:
		held := &HeldError{Name: a.message.GetName(), Holder: holderOf(o.reply.GetHolder()), election: a.message.GetClass() == api.Class_CLASS_ELECTION}
		return nil, held, true
	default:
		return nil, refusal(a.kind, a.message.GetName(), o.reply), true
	}
}

// handOut makes the handle of a grant, or returns nil if the session is lost: a
// grant proves nothing about the deadline, since it may have been long on its
// way.
func (c *Client) handOut(a acquisition, r *request, grant *api.Reply) *hold {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := r.session
	s.check(c.cfg.now())
	if s.gone {
		return nil
	}
	h := &hold{
		client: c, session: s, sequence: r.sequence, kind: a.kind, name: a.message.GetName(), fence: grant.GetFence(), floor: grant.GetFloor(),
		ctx: newHoldContext(s.lease), moved: make(chan struct{}, 1),
	}
	s.grants[r.sequence] = h
	if reason, asked := s.asked[r.sequence]; asked {
		delete(s.asked, r.sequence)
		h.ctx.end(&RevokedError{reason})
	}
	return h
}

// abandon is called when the caller of a request to acquire goes away.
func (c *Client) abandon(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := r.session
	if s.gone {
		return
	}
	if h, granted := s.grants[r.sequence]; granted && h == nil {
		s.giveBack(r.sequence)
		return
	}
	s.withdraw(r)
}

func (h *hold) deadline() time.Duration { return time.Duration(h.session.lease.deadline()) }

func (h *hold) renewed() <-chan struct{} { return h.moved }

// number returns a number of the grant while it is held.
func (h *hold) number(n uint64) (uint64, error) {
	if h.ctx.Err() == nil {
		return n, nil
	}
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return 0, fmt.Errorf("conclave: %s %q: %w", h.kind, h.name, cause)
	}
	return 0, h.notHeld()
}

// notHeld says why a handle holds nothing any more.
func (h *hold) notHeld() error {
	if cause := context.Cause(h.ctx); errors.Is(cause, ErrLost) {
		return fmt.Errorf("conclave: %s %q: %w: %w", h.kind, h.name, ErrNotHeld, cause)
	}
	return fmt.Errorf("conclave: %s %q: %w: it was released before", h.kind, h.name, ErrNotHeld)
}

// release ends the context, and only then lets the servers know.
func (h *hold) release(ctx context.Context) error {
	if !h.giveUp() {
		return h.notHeld()
	}
	h.ctx.end(ErrReleased)
	o, err := h.call(ctx, "release", releaseOf(h.sequence))
	if err != nil {
		return err
	}
	switch code := o.reply.GetCode(); {
	case o.err == errSessionGone || code == api.Code_CODE_NOT_HELD:
		return fmt.Errorf("conclave: %s %q: %w: its session ended before the release", h.kind, h.name, ErrNotHeld)
	case o.err == ErrClosed || code == api.Code_CODE_OK || code == api.Code_CODE_STALE:
		return nil // closing the session releases as well
	default:
		return refusal("release "+h.kind, h.name, o.reply)
	}
}

// giveUp reports whether the hold was held until now. One whose holder is asked
// to leave is, until it is given up, or lost as any other.
func (h *hold) giveUp() bool {
	held := h.ctx.Err() == nil || errors.Is(context.Cause(h.ctx), ErrRevoked) && h.session.lease.valid()
	h.client.mu.Lock()
	defer h.client.mu.Unlock()
	if !held || h.released || h.session.gone {
		return false
	}
	h.released = true
	return true
}

// call has a request about the hold carried out. If ctx ends first, the request
// goes on in the background.
func (h *hold) call(ctx context.Context, op string, message *api.Request) (outcome, error) {
	done := make(chan outcome, 1)
	h.client.submit(h.session, &request{message: message, done: done})
	select {
	case o := <-done:
		return o, nil
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o, nil
	default:
		return outcome{}, interrupted(ctx, op+" "+h.kind, h.name, h.client.trouble())
	}
}

// update changes the value of an election.
func (h *hold) update(ctx context.Context, value []byte) error {
	if err := validateValue(h.name, value); err != nil {
		return err
	}
	if h.ctx.Err() != nil {
		return h.notHeld()
	}
	o, err := h.call(ctx, "update", &api.Request{Op: &api.Request_Update{Update: &api.Update{Hold: h.sequence, Value: value}}})
	if err != nil {
		return err
	}
	switch code := o.reply.GetCode(); {
	case o.err != nil || code == api.Code_CODE_NOT_HELD:
		return h.notHeld()
	case code == api.Code_CODE_OK:
		return nil
	default:
		return refusal("update "+h.kind, h.name, o.reply)
	}
}

// transfer names the candidate that is to lead next, then gives the leadership
// up. The servers ask this leader to leave, so nobody leads before it has.
func (h *hold) transfer(ctx context.Context, to string) error {
	if h.ctx.Err() != nil {
		return h.notHeld()
	}
	message := &api.Request{Op: &api.Request_Transfer{Transfer: &api.Transfer{Hold: h.sequence, To: []byte(to)}}}
	o, err := h.call(ctx, "transfer", message)
	if err != nil {
		return err
	}
	switch code := o.reply.GetCode(); {
	case o.err != nil || code == api.Code_CODE_NOT_HELD:
		return h.notHeld()
	case code == api.Code_CODE_OK || code == api.Code_CODE_STALE:
		return h.release(ctx)
	default:
		return refusal("transfer "+h.kind, h.name, o.reply)
	}
}
