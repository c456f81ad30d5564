package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/stream"
)

// carryOutAtHome has a request carried out by the home of its session: this server, or
// another one, to which it is passed on once.
func (s *Server) carryOutAtHome(ctx context.Context, req *api.Request) *api.Reply {
	ctx, stop := s.live(ctx)
	defer stop()
	there := req.GetHome() != s.cfg.ID
	var reply *api.Reply
	var err error
	switch {
	case !there:
		reply, err = s.doAsHome(ctx, req)
	case passedOn(ctx):
		err = node.ErrNotMember
	default:
		reply, err = s.passToHome(ctx, req)
	}
	switch {
	case err == nil:
		return reply
	case errors.Is(err, node.ErrNotMember):
		return stream.Refusal(req, api.Code_CODE_NOT_MEMBER, fmt.Sprintf("home: server %d takes no part in the view, and keeps no session: open another one", req.GetHome()))
	}
	if there && waits(req) { // it may be in a queue now or later, but nobody waits for it any more
		who, _ := callerOf(ctx)
		s.tasks.Go(func() { s.withdraw(who, req) })
	}
	return s.failed(ctx, req, s.spoken(ctx, err))
}

// passToHome passes a request on to the home of its session.
func (s *Server) passToHome(ctx context.Context, req *api.Request) (*api.Reply, error) {
	who, _ := callerOf(ctx)
	ctx, err := vouch(ctx)
	if err != nil {
		return nil, err
	}
	home, err := s.callees.get(req.GetHome())
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
	who, _ := callerOf(ctx)
	c := newCall()
	conn, err := s.node.ConnectHome(c)
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
		err = node.ErrNotMember
	}
	return reply, err
}

// anyHome returns a server that can be the home of a session for guarded locks: this one, or
// a known member of the view.
func (s *Server) anyHome(ctx context.Context) (home uint64, err error) {
	err = s.node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Registry().Live().Members {
			if home == 0 || m.Server == s.cfg.ID {
				home = m.Server
			}
		}
	})
	if err == nil && home == 0 {
		err = malformed("home: no server takes part: no algorithm guards a lock, or the servers are about to begin")
	}
	return home, err
}
