package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Do carries out one request. A caller that numbers its requests itself can safely
// repeat one; other callers leave the number 0 and get one from the clock.
func (s service) Do(ctx context.Context, req *api.Request) (*api.Reply, error) {
	reply := s.do(ctx, req)
	if reply.GetCode() == api.Code_CODE_DENIED {
		s.metrics.Denied(verbOfRequest(req))
	}
	if who, err := authn.CallerOf(ctx); err == nil {
		s.audit.Answered(who, "Do", reply.GetCode(), reply.GetMessage())
	}
	return reply, nil
}

// verbOfRequest returns the verb that a request requires.
func verbOfRequest(req *api.Request) access.Verb {
	if req.GetRevoke() != nil {
		return access.Revoke
	}
	return access.Hold
}

// do has one request carried out by the leader. The reply reports every failure.
func (s *Server) do(ctx context.Context, req *api.Request) *api.Reply {
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return s.failed(ctx, req, err)
	}
	if _, problem := who.Command(req); problem != "" {
		return stream.Refusal(req, api.Code_CODE_INVALID, problem)
	}
	ctx = authn.WithCaller(ctx, who)
	if waits(req) {
		ctx = s.queueing(ctx, req)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = forward.WithDeadline(ctx)
		defer cancel()
	}
	if s.guarded.RouteOf(ctx, req) == guarded.ForLeader {
		command, _ := who.Command(req)
		return s.guarded.RevokeHere(req, command)
	}
	if req.GetSequence() != 0 || authn.IsForwarded(ctx) {
		return s.carryOut(ctx, req)
	}
	return s.carryOutNumbered(ctx, req)
}

// waits reports whether a request may wait in a queue.
func waits(req *api.Request) bool {
	return req.GetAcquire() != nil && !req.GetAcquire().GetTry()
}

// mostWithdrawn is how often a request gets another number because another server has withdrawn it.
const mostWithdrawn = 100

// carryOutNumbered gives a request a number. If the session has seen larger ones, for
// example because a clock was set back, it tries larger ones. If the leader has withdrawn the request, because
// the connection between the servers broke, it goes to the end of the queue again.
func (s *Server) carryOutNumbered(ctx context.Context, req *api.Request) *api.Reply {
	for ahead, withdrawn := time.Second, 0; ; {
		sequence := s.numbers.next()
		numbered := &api.Request{Session: req.GetSession(), Sequence: sequence, Low: lowFor(sequence), Home: req.GetHome(), Op: req.GetOp()}
		reply := s.carryOut(ctx, numbered)
		switch {
		case reply.GetCode() == api.Code_CODE_STALE && ahead <= 24*time.Hour:
			// The request was not carried out: nobody else has sent this number.
			s.numbers.skip(ahead)
			ahead *= 4
		case reply.GetCode() == api.Code_CODE_CANCELLED && waits(req) && ctx.Err() == nil && withdrawn < mostWithdrawn:
			withdrawn++
		default:
			return s.unlessGone(ctx, numbered, reply)
		}
	}
}

// unlessGone returns a reply. If it grants something and the caller has gone, it is withdrawn: the
// caller does not know the number of its request, so it could not find the hold.
func (s *Server) unlessGone(ctx context.Context, req *api.Request, reply *api.Reply) *api.Reply {
	if req.GetAcquire() == nil || reply.GetCode() != api.Code_CODE_OK || ctx.Err() == nil {
		return reply
	}
	s.abandon(ctx, req)
	return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, "granted after the caller had gone; the hold is being released")
}

// abandon withdraws a request if it is one to acquire, in the background: nobody waits for it any more.
func (s *Server) abandon(ctx context.Context, req *api.Request) {
	if req.GetAcquire() == nil {
		return
	}
	who, _ := authn.CallerOf(ctx)
	s.tasks.Go(func() { s.abandoned.withdraw(who, req) })
}

// carryOut has a request carried out by the leader, or by the home of its session.
func (s *Server) carryOut(ctx context.Context, req *api.Request) *api.Reply {
	if s.guarded.RouteOf(ctx, req) == guarded.AtHome {
		return s.carryOutAtHome(ctx, req)
	}
	reply, err := forward.OnLeader(ctx, s.forward,
		func(ctx context.Context) (*api.Reply, error) {
			if s.guarded.RouteOf(ctx, req) == guarded.ByHomes {
				return s.guarded.Revoke(ctx, req)
			}
			return s.doHere(ctx, req)
		},
		func(ctx context.Context, leader api.ConclaveClient) (*api.Reply, error) {
			who, _ := authn.CallerOf(ctx)
			passed := who.PassedOn(req)
			passed.Home = 0
			reply, err := s.passOn(ctx, leader, passed)
			if err == nil {
				reply.Session = req.GetSession()
			}
			return reply, cmpCode(reply, err)
		})
	if err == nil {
		return reply
	}
	if !authn.IsForwarded(ctx) {
		s.abandon(ctx, req) // it may be in a queue now or later, or granted
	}
	if queueingOf(ctx).over() {
		return notGranted(req, "is leaving")
	}
	return s.failed(ctx, req, err)
}

// cmpCode turns a reply into an error if its server turned out not to lead.
func cmpCode(reply *api.Reply, err error) error {
	if err == nil && reply.GetCode() == api.Code_CODE_NOT_LEADER {
		return fmt.Errorf("%w: %s", forward.ErrMoved, reply.GetMessage())
	}
	return err
}

// failed returns the reply for a request that got no answer.
func (s *Server) failed(ctx context.Context, req *api.Request, err error) *api.Reply {
	switch status.Code(err) {
	case codes.FailedPrecondition:
		reply := stream.Refusal(req, api.Code_CODE_NOT_LEADER, api.Reason(err))
		reply.Leader = s.node.ClientAddress(s.forward.Leader())
		return reply
	case codes.Unavailable, codes.Canceled:
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, api.Reason(err)+"; the outcome is unknown")
	}
	return stream.Refusal(req, api.Code_CODE_INTERNAL, api.Reason(err))
}

// doHere carries out a request on this server, which leads.
func (s *Server) doHere(ctx context.Context, req *api.Request) (*api.Reply, error) {
	c := node.NewCall()
	conn, err := s.node.Connect(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	who, _ := authn.CallerOf(ctx)
	command, _ := who.Command(req) // the caller has checked it
	if err := conn.Submit(ctx, []registry.Command{command}); err != nil {
		return nil, err
	}
	return s.await(ctx, c, req)
}

// await waits for the result of a request, and while the request is queued, for the
// grant. If there is no answer at all it gives up after the default deadline. A request whose wait is over
// leaves its queue, but not before its first answer: that may be a grant.
func (s *Server) await(ctx context.Context, c *node.Call, req *api.Request) (*api.Reply, error) {
	waiting := queueingOf(ctx)
	over, leaving, stop := s.queueEnds(waiting)
	defer stop()
	silence := time.NewTimer(forward.DefaultDeadline)
	defer silence.Stop()
	begun := time.Now()
	for queued, leave := false, false; !queued || !leave; {
		select {
		case r := <-c.Replies:
			if r.Sequence != 0 && r.Sequence != req.GetSequence() {
				continue // for another call in the same session
			}
			if !queued {
				s.answered(req, begun)
			}
			if r.Result.Code != registry.Queued {
				return stream.ReplyProto(req.GetSession(), &r), nil
			}
			queued = true
			silence.Stop()
			waiting.noteQueued(ctx)
		case <-c.Deposed:
			return nil, node.ErrNotLeader
		case <-silence.C:
			return nil, context.DeadlineExceeded
		case <-over:
			over, leave = nil, true
		case <-leaving:
			leaving, leave = nil, true
		case <-ctx.Done():
			if authn.IsForwarded(ctx) { // the server that has passed it on may be gone, too
				s.abandon(ctx, req)
			}
			return nil, ctx.Err()
		}
	}
	return s.leave(ctx, req)
}

// leave removes a waiting request from its queue and returns the reply. It continues
// even if the caller is gone: otherwise nobody would release a later grant.
func (s *Server) leave(ctx context.Context, req *api.Request) (*api.Reply, error) {
	who, _ := authn.CallerOf(ctx)
	left := make(chan bool, 1)
	s.tasks.Go(func() { left <- s.abandoned.withdraw(who, req) })
	select {
	case has := <-left:
		how := "has left"
		if !has {
			how = "is leaving"
		}
		if queueingOf(ctx).over() {
			return notGranted(req, how), nil
		}
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, fmt.Sprintf("server %d is stopping; the request %s the queue", s.cfg.ID, how)), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notGranted is the reply to a request whose wait is over.
func notGranted(req *api.Request, how string) *api.Reply {
	message := fmt.Sprintf("%q was not granted in time; the request %s the queue", req.GetAcquire().GetName(), how)
	return stream.Refusal(req, api.Code_CODE_TIMEOUT, message)
}

// numbers gives sequence numbers to requests without one: microseconds since 1970. They
// grow from server to server and from start to start, and JSON readers represent them
// exactly.
type numbers struct {
	mu    sync.Mutex
	last  uint64
	ahead time.Duration // of the clock
}

func (n *numbers) next() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = max(n.last+1, uint64(time.Now().Add(n.ahead).UnixMicro()))
	return n.last
}

// skip increases all further numbers by the microseconds in d.
func (n *numbers) skip(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ahead += d
}

// lowFor returns the low mark for a number: one second earlier, since requests of one
// session may go through several servers at once and overtake each other.
func lowFor(sequence uint64) uint64 {
	const lag = uint64(time.Second / time.Microsecond)
	if sequence <= lag {
		return 1
	}
	return sequence - lag
}
