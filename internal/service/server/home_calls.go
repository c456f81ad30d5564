package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
	"github.com/conclave-io/conclave/internal/service/version"
)

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
	c := newCall()
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

// anyHome returns a server that can be the home of a session for guarded locks: this one, or
// a known member of the view.
func (s *Server) anyHome(ctx context.Context) (home uint64, err error) {
	err = s.node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			if home == 0 || m.Server == s.cfg.ID {
				home = m.Server
			}
		}
	})
	if err == nil && home == 0 {
		err = status.Error(codes.InvalidArgument, "home: no server takes part: no algorithm guards a lock, or the servers are about to begin")
	}
	return home, err
}

// sessionsAtHomes adds to a page of sessions those kept at homes. A member that does
// not answer is left out.
func (s *Server) sessionsAtHomes(ctx context.Context, req *api.SessionsRequest, after registry.SessionID, answer *api.SessionsResponse) {
	here := func(context.Context) (*api.SessionsResponse, error) { return s.sessionsHere(req, after), nil }
	asked := &api.SessionsRequest{After: req.GetAfter(), Limit: req.GetLimit(), Stale: true}
	for _, m := range atMembers(ctx, s, here, forward.Asking(api.ConclaveClient.Sessions, asked)) {
		answer.Sessions = append(answer.Sessions, m.answer.GetSessions()...)
		answer.More = answer.More || m.answer.GetMore()
	}
	slices.SortFunc(answer.Sessions, func(a, b *api.Session) int { return bytes.Compare(a.GetId(), b.GetId()) })
	if most := limited(req.GetLimit()); len(answer.Sessions) > most {
		answer.Sessions, answer.More = answer.Sessions[:most], true
	}
}

// sessionsHere returns the sessions at this server as a home.
func (s *Server) sessionsHere(req *api.SessionsRequest, after registry.SessionID) *api.SessionsResponse {
	page, left, more := s.node.Home().Sessions(after, limited(req.GetLimit()))
	answer := &api.SessionsResponse{More: more}
	for i := range page {
		one := stream.SessionProto(&page[i], left[i])
		one.Home = s.cfg.ID
		answer.Sessions = append(answer.Sessions, one)
	}
	return answer
}

// endSessionOnRecord records the end of a session that a home keeps, and has the home end it. This
// server leads, and the log has decided that the caller may do it.
func (s *Server) endSessionOnRecord(ctx context.Context, req *api.EndSessionRequest, command *registry.Command, unknown error) (*api.EndSessionResponse, error) {
	what := s.sessionAtHome(ctx, command.Session)
	if what == "" {
		return nil, unknown
	}
	if s.node.Level() >= version.Access {
		by := command.Origin()
		rand.Read(by.Request[:]) // the log has answered the other number; never fails
		if err := s.note(ctx, by, "end-session", registry.ClipText(what+": "+req.GetReason())); err != nil {
			return nil, err
		}
	}
	return s.endSessionAtHome(ctx, req, command, unknown)
}

// sessionAtHome describes a session that a home keeps for the record, or returns "".
func (s *Server) sessionAtHome(ctx context.Context, id registry.SessionID) (what string) {
	before := id
	for i := len(before) - 1; i >= 0; i-- {
		if before[i]--; before[i] != 0xff {
			break
		}
	}
	found := new(api.SessionsResponse)
	s.sessionsAtHomes(s.atHomes(ctx), &api.SessionsRequest{After: before[:], Limit: 1}, before, found)
	for _, one := range found.GetSessions() {
		if registry.SessionID(one.GetId()) == id {
			return fmt.Sprintf("%v of %.64q at server %d", id, one.GetOwner(), one.GetHome())
		}
	}
	s.holdsAtHomes(ctx, func(res *api.Resource) { // programs in the process of a server have no other session
		for _, h := range res.GetHolders() {
			if registry.SessionID(h.GetSession()) == id {
				what = fmt.Sprintf("%v of %.64q", id, h.GetOwner())
			}
		}
	})
	return what
}

// endSessionAtHome ends a session that is not in the registry, at the home that keeps it. If
// no member does, the answer is the leader's.
func (s *Server) endSessionAtHome(ctx context.Context, req *api.EndSessionRequest, command *registry.Command, unknown error) (*api.EndSessionResponse, error) {
	here := func(context.Context) (*api.EndSessionResponse, error) { return s.endSessionHere(command) }
	asked := &api.EndSessionRequest{Id: req.GetId(), Reason: req.GetReason(), Home: true}
	for _, m := range atMembers(ctx, s, here, forward.Asking(api.ConclaveClient.EndSession, asked)) {
		switch {
		case m.err == nil:
			return m.answer, nil
		case status.Code(m.err) != codes.NotFound:
			unknown = status.Errorf(codes.Unavailable, "cannot find out whether server %d keeps the session: %s", m.server, api.Reason(m.err))
		}
	}
	return nil, unknown
}

// endSessionHere ends a session that this server keeps as a home.
func (s *Server) endSessionHere(command *registry.Command) (*api.EndSessionResponse, error) {
	holds, result := s.node.Home().EndSession(command)
	if result.Code != registry.OK {
		return nil, failureOf(result)
	}
	return &api.EndSessionResponse{Holds: uint32(holds)}, nil
}
