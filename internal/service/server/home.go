package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// maxDiverted bounds the requests of a stream to revoke guarded locks that are under way.
const maxDiverted = 256

// diverted are the requests of a stream that this server answers by itself.
type diverted struct {
	*Server
	ctx    context.Context
	who    stream.Caller
	answer func(...*api.Reply)
	// revoking counts the requests to revoke guarded locks that are under way.
	revoking atomic.Int32
}

// divert returns what removes from the frames of a stream the requests to revoke guarded locks: the
// leader has to ask the homes. They are answered when all homes have been asked. It also removes the
// requests that exceed their principal's rate.
func (s *Server) divert(ctx context.Context, who stream.Caller, answer func(...*api.Reply)) func(*api.ClientFrame) {
	d := &diverted{Server: s, ctx: ctx, who: who, answer: answer}
	return func(frame *api.ClientFrame) {
		frame.Requests = slices.DeleteFunc(frame.Requests, d.takes)
	}
}

// takes reports whether a request is answered by this server itself.
func (d *diverted) takes(req *api.Request) bool {
	if refusal := d.gate.TooFast(d.who, req); refusal != nil {
		d.answer(refusal)
		return true
	}
	if req.GetRevoke() == nil || d.guarded.RouteOf(d.ctx, req) == guarded.ByLog {
		return false
	}
	if d.revoking.Add(1) > maxDiverted {
		d.revoking.Add(-1)
		d.answer(stream.Refusal(req, api.Code_CODE_EXHAUSTED, "too many requests to revoke guarded locks are under way on this stream: try again"))
		return true
	}
	req.Home = 0 // only the leader says which home it asks
	d.tasks.Go(func() {
		defer d.revoking.Add(-1)
		d.answer(d.do(d.ctx, req))
	})
	return true
}

// carryOutAtHome has a request carried out by the home of its session: this server, or
// another one, to which it is passed on once.
func (s *Server) carryOutAtHome(ctx context.Context, req *api.Request) *api.Reply {
	ctx, stop := s.forward.Serving(ctx)
	defer stop()
	var reply *api.Reply
	var err error
	switch {
	case req.GetHome() == s.cfg.ID:
		reply, err = s.doAsHome(ctx, req)
	case authn.IsForwarded(ctx):
		err = home.ErrNotMember
	default:
		reply, err = s.passToHome(ctx, req)
	}
	switch {
	case err == nil:
		return reply
	case errors.Is(err, home.ErrNotMember):
		return stream.Refusal(req, api.Code_CODE_NOT_MEMBER, fmt.Sprintf("home: server %d takes no part in the view, and keeps no session: open another one", req.GetHome()))
	}
	if !authn.IsForwarded(ctx) {
		s.abandon(ctx, req)
	}
	if queueingOf(ctx).over() {
		return notGranted(req, "is leaving")
	}
	return s.failed(ctx, req, s.forward.Status(ctx, err))
}

// passToHome passes a request on to the home of its session.
func (s *Server) passToHome(ctx context.Context, req *api.Request) (*api.Reply, error) {
	who, _ := authn.CallerOf(ctx)
	ctx, home, err := s.forward.Reach(ctx, req.GetHome())
	if err != nil {
		return nil, err
	}
	reply, err := s.passOn(ctx, home, who.PassedOn(req))
	if err == nil {
		reply.Session = req.GetSession()
	}
	return reply, err
}

// doAsHome carries out a request in a session that this server keeps by itself.
func (s *Server) doAsHome(ctx context.Context, req *api.Request) (*api.Reply, error) {
	who, _ := authn.CallerOf(ctx)
	c := node.NewCall()
	conn, err := s.node.Home().Connect(c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	command, _ := who.Command(req) // the caller has checked it
	if err := conn.Submit(ctx, []registry.Command{command}); err != nil {
		return nil, err
	}
	reply, err := s.await(ctx, c, req)
	if errors.Is(err, node.ErrNotLeader) { // the home is gone, and all its sessions with it
		err = home.ErrNotMember
	}
	return reply, err
}
