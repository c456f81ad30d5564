package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// AttachHome serves one client process whose sessions this server keeps by itself.
func (s service) AttachHome(frames attachStream) error {
	ctx := frames.Context()
	who, err := authn.CallerOf(ctx)
	if err != nil {
		return err
	}
	out, cut := s.outboxFor(ctx, who)
	out.home = true
	welcome := &api.Welcome{Cluster: s.identity, Server: s.cfg.ID, Version: protocolVersion}
	conn, err := s.node.Home().Connect(out)
	if err == nil {
		defer conn.Close()
		welcome.Seat, welcome.LeaseNs = conn.Seat[:], int64(conn.Lease)
		for _, seat := range conn.Adopted {
			welcome.Adopted = append(welcome.Adopted, seat[:])
		}
	}
	if err := frames.Send(&api.ServerFrame{Welcome: welcome}); err != nil {
		return err
	}
	if err != nil {
		return s.turnAway(frames)
	}
	s.metrics.Attached.Add(1)
	defer s.metrics.Attached.Add(-1)
	return s.converse(frames, conn, out, cut)
}

// turnAway sends a farewell to a client because this server is not, or no longer, a home.
func (s *Server) turnAway(frames attachStream) error {
	farewell := &api.Farewell{Code: api.Code_CODE_NOT_MEMBER, Message: fmt.Sprintf("server %d takes no part in the view: ask a member", s.cfg.ID)}
	if to := s.node.Home().Successor(); to != 0 {
		farewell.Heir = s.node.ClientAddress(to)
	}
	// The view of a server that is stopping has no members.
	_ = s.node.View(frames.Context(), func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			if address := s.node.ClientAddress(m.Server); address != "" && m.Server != s.cfg.ID {
				farewell.Members = append(farewell.Members, address)
			}
		}
	})
	return frames.Send(&api.ServerFrame{Farewell: farewell})
}

// divert removes from a frame the requests to revoke guarded locks: the leader has to ask the
// homes. They are answered when all homes have been asked. On every stream, divert also removes
// the requests that exceed their principal's rate.
func (s *Server) divert(ctx context.Context, frame *api.ClientFrame, out *outbox) {
	kept := frame.Requests[:0]
	for _, req := range frame.Requests {
		if refusal := s.gate.TooFast(out.sessions.caller, req); refusal != nil {
			out.refuse([]*api.Reply{refusal})
			continue
		}
		if req.GetRevoke() == nil || s.guarded.RouteOf(ctx, req) == guarded.ByLog {
			kept = append(kept, req)
			continue
		}
		s.divertRevoke(ctx, req, out)
	}
	frame.Requests = kept
}

// maxDiverted bounds the requests of a stream to revoke guarded locks that are under way.
const maxDiverted = 256

func (s *Server) divertRevoke(ctx context.Context, req *api.Request, out *outbox) {
	if out.diverted.Add(1) > maxDiverted {
		out.diverted.Add(-1)
		out.refuse([]*api.Reply{stream.Refusal(req, api.Code_CODE_EXHAUSTED, "too many requests to revoke guarded locks are under way on this stream: try again")})
		return
	}
	req.Home = 0 // only the leader says which home it asks
	s.tasks.Go(func() {
		defer out.diverted.Add(-1)
		out.refuse([]*api.Reply{s.do(ctx, req)})
	})
}

// carryOutAtHome has a request carried out by the home of its session: this server, or
// another one, to which it is passed on once.
func (s *Server) carryOutAtHome(ctx context.Context, req *api.Request) *api.Reply {
	ctx, stop := s.forward.Serving(ctx)
	defer stop()
	there := req.GetHome() != s.cfg.ID
	var reply *api.Reply
	var err error
	switch {
	case !there:
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
	if there && waits(req) { // it may be in a queue now or later, but nobody waits for it any more
		who, _ := authn.CallerOf(ctx)
		s.tasks.Go(func() { s.withdraw(who, req) })
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
	reply, err := home.Do(ctx, who.PassedOn(req))
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
