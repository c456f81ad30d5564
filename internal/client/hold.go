package client

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

// Hold is what a handle holds, or held: the grant of one request to acquire. Its methods may be
// called by many goroutines at once.
type Hold struct {
	conn     *Conn
	call     *line.Call // the request, by which the line knows the hold
	election bool
	name     string
	fence    uint64
	floor    uint64
	lease    *lease
	ttl      time.Duration
	ctx      *holdContext
	moved    chan struct{}
	lingers  bool // the servers keep the name closed as the request asks
	// released says that it was given up.
	released atomic.Bool
}

func newHold(c *Conn, call *line.Call, p *pending, l *lease, grant *api.Reply) *Hold {
	a := call.Op.GetAcquire()
	h := &Hold{
		conn: c, call: call, election: a.GetClass() == api.Class_CLASS_ELECTION, name: a.GetName(), fence: grant.GetFence(), floor: grant.GetFloor(), lingers: grant.GetLingers(),
		lease: l, ttl: time.Duration(call.Session().Span()), ctx: newHoldContext(l, c.cfg.Errors.Lost), moved: make(chan struct{}, 1),
	}
	h.ctx.keeps = append(slices.Clip(p.keeps), keep{h.Kept(), h.ctx})
	return h
}

// ErrNoLinger means that the servers granted a request and would not keep the name closed after the
// hold, as it asked, because they are too old. The hold was given back.
var ErrNoLinger = errors.New("the servers are too old to keep a name closed after a hold: upgrade them")

// Acquire waits until a is granted. It sets a.Keeps to what ctx says that the caller keeps. If the
// session is lost before the caller has its hold, Acquire begins again: a grant proves nothing
// about the deadline, since it may have been long on its way. The error is that of Conn.Do.
func (c *Conn) Acquire(ctx context.Context, a *api.Acquire) (*Hold, error) {
	keeps := keepsOf(ctx)
	a.Keeps = c.messageOf(keeps)
	for {
		call := &line.Call{Op: &api.Request{Op: &api.Request_Acquire{Acquire: a}}}
		o := c.do(ctx, call, keeps)
		switch {
		case o.hold != nil && ctx.Err() != nil:
			c.post(line.Input{Kind: line.Withdraw, Call: call})
			return nil, interrupted(ctx, o)
		case o.hold != nil && a.GetAtLeastNs()+a.GetDelayAfterLossNs() > 0 && !o.hold.lingers:
			c.post(line.Input{Kind: line.Withdraw, Call: call})
			return nil, ErrNoLinger
		case o.hold != nil && !o.hold.lease.valid():
			continue
		case o.hold != nil:
			return o.hold, nil
		case o.reply != nil:
			return nil, &Rejected{o.reply}
		}
		return nil, failure(ctx, o)
	}
}

// Name returns the name of the lock or the election.
func (h *Hold) Name() string { return h.name }

// Fence returns the fence of the grant, even after its end.
func (h *Hold) Fence() uint64 { return h.fence }

// Floor returns the floor of the grant, even after its end.
func (h *Hold) Floor() uint64 { return h.floor }

// Context returns the context of the hold, which ends no later than the hold does.
func (h *Hold) Context() context.Context { return h.ctx }

// Ended returns the cause with which the context of the hold has ended, or nil. It reads the clock.
func (h *Hold) Ended() error {
	if h.ctx.Err() == nil {
		return nil
	}
	return context.Cause(h.ctx)
}

// Deadline returns the reading of the clock of deadlines before which the hold is certain, unless
// it is released.
func (h *Hold) Deadline() time.Duration { return time.Duration(h.lease.deadline()) }

// TTL returns how long the hold lasts at most if it is not renewed.
func (h *Hold) TTL() time.Duration { return h.ttl }

// Renewed returns a channel that receives a value after Deadline has moved.
func (h *Hold) Renewed() <-chan struct{} { return h.moved }

// Kept names the hold.
func (h *Hold) Kept() Kept {
	return Kept{Cluster: h.conn.identity, Election: h.election, Name: h.name, Fence: h.fence}
}

// notHeld returns the error of a request about a hold that has ended.
func (h *Hold) notHeld() error { return &NotHeld{context.Cause(h.ctx)} }

// Release ends the context, and only then lets the servers know. If ctx ends first, the request
// continues in the background. The error is a *NotHeld if nothing was held, or that of Conn.Do.
func (h *Hold) Release(ctx context.Context) error { return h.release(ctx, false) }

// Discard is like Release for a hold that was not used: the name does not stay closed after it.
func (h *Hold) Discard(ctx context.Context) error { return h.release(ctx, true) }

func (h *Hold) release(ctx context.Context, unused bool) error {
	if !h.giveUp() {
		return h.notHeld()
	}
	h.ctx.end(h.conn.cfg.Errors.Released)
	o := h.change(ctx, &api.Request{Op: &api.Request_Release{Release: &api.Release{Unused: unused}}})
	switch code := o.reply.GetCode(); {
	case errors.Is(o.err, line.ErrWithdrawn):
		return interrupted(ctx, o)
	case errors.Is(o.err, line.ErrSessionGone) || code == api.Code_CODE_NOT_HELD:
		return &NotHeld{}
	case errors.Is(o.err, line.ErrClosed) || code == api.Code_CODE_OK || code == api.Code_CODE_STALE:
		return nil // closing the session releases as well
	default:
		return &Rejected{o.reply}
	}
}

// giveUp reports whether the hold was held until now. One whose holder is asked to leave is, until
// it is given up, or lost as any other.
func (h *Hold) giveUp() bool {
	cause := h.Ended()
	revoked := cause != nil && cause != h.conn.cfg.Errors.Lost && cause != h.conn.cfg.Errors.Released
	held := cause == nil || revoked && h.lease.valid()
	return held && !h.released.Swap(true)
}

// change has a request about the hold carried out. If ctx ends first, the request continues in the
// background.
func (h *Hold) change(ctx context.Context, request *api.Request) outcome {
	return h.conn.do(ctx, &line.Call{Of: h.call, Op: request}, nil)
}

// alter has a request about the hold carried out while it is held. The codes in fine are successes.
func (h *Hold) alter(ctx context.Context, request *api.Request, fine ...api.Code) error {
	if h.ctx.Err() != nil {
		return h.notHeld()
	}
	o := h.change(ctx, request)
	switch code := o.reply.GetCode(); {
	case errors.Is(o.err, line.ErrWithdrawn):
		return interrupted(ctx, o)
	case o.err != nil || code == api.Code_CODE_NOT_HELD:
		return h.notHeld()
	case !slices.Contains(fine, code):
		return &Rejected{o.reply}
	}
	return nil
}

// Update changes the value of a leader. The error is a *NotHeld or that of Conn.Do.
func (h *Hold) Update(ctx context.Context, value []byte) error {
	return h.alter(ctx, &api.Request{Op: &api.Request_Update{Update: &api.Update{Value: value}}}, api.Code_CODE_OK)
}

// Transfer names the candidate that is to lead next. The servers then ask this leader to leave, so
// nobody leads before it has. The error is a *NotHeld or that of Conn.Do.
func (h *Hold) Transfer(ctx context.Context, to string) error {
	request := &api.Request{Op: &api.Request_Transfer{Transfer: &api.Transfer{To: []byte(to)}}}
	return h.alter(ctx, request, api.Code_CODE_OK, api.Code_CODE_STALE)
}
