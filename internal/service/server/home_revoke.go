package server

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// The log does not know who holds a guarded lock. So the leader finds the holder, has the log
// decide about the request and record it, and then asks the homes.

// revokesGuarded reports whether a request revokes a guarded lock.
func (s *Server) revokesGuarded(ctx context.Context, req *api.Request) (guarded bool) {
	if req.GetRevoke() == nil || req.GetRevoke().GetClass() != api.Class_CLASS_LOCK {
		return false
	}
	_ = s.node.View(ctx, func(r *replica.Replica) { // fails if the server is stopping: then nothing is revoked
		g := r.Registry().Guarded().GuardOf(req.GetRevoke().GetName())
		guarded = g != nil && g.Use.Live()
	})
	return guarded
}

// asksHome reports whether the leader asks this server as a home to carry out a request to revoke.
func (s *Server) asksHome(ctx context.Context, req *api.Request) bool {
	return req.GetRevoke() != nil && req.GetHome() == s.cfg.ID && authn.IsForwarded(ctx)
}

// revokeGuarded asks the holders of a lock at all homes to release it (H9). This server leads.
func (s *Server) revokeGuarded(ctx context.Context, req *api.Request) (*api.Reply, error) {
	held, unknown := s.heldAtHomes(ctx, req.GetRevoke())
	logged := proto.CloneOf(req)
	logged.Home = 0
	if held != nil {
		logged.GetRevoke().Fence = held.GetFence()
	}
	reply, err := s.doHere(ctx, logged)
	if err != nil || reply.GetCode() != api.Code_CODE_NOT_FOUND {
		return reply, err // refused, or agreement guards the lock by now
	}
	if held == nil {
		return s.revokeNone(req, unknown), nil
	}
	who, _ := authn.CallerOf(ctx)
	command, _ := who.Command(req) // the caller has checked it
	here := func(context.Context) (*api.Reply, error) { return s.revokeHere(req, command), nil }
	answer := s.revokeNone(req, "")
	for _, r := range atEachMember(ctx, s, here, func(ctx context.Context, id uint64, member api.ConclaveClient) (*api.Reply, error) {
		asked := who.PassedOn(req)
		asked.Home = id
		return member.Do(ctx, asked)
	}) {
		switch {
		case r.err != nil:
			answer = s.revokeNone(req, unanswered(r.server, api.Reason(r.err)))
		case r.answer.GetCode() == api.Code_CODE_OK:
			r.answer.Session = req.GetSession()
			return r.answer, nil
		case r.answer.GetCode() == api.Code_CODE_UNAVAILABLE:
			answer = stream.Refusal(req, r.answer.GetCode(), r.answer.GetMessage())
		}
	}
	return answer, nil
}

func unanswered(server uint64, why string) string {
	return fmt.Sprintf("server %d did not answer whether a client of it holds the lock: %s", server, why)
}

// heldAtHomes returns the hold at a home that a request is about, or nil. Unknown says which home
// did not answer.
func (s *Server) heldAtHomes(ctx context.Context, revoke *api.Revoke) (held *api.Holder, unknown string) {
	answer := new(api.ExplainResponse)
	s.explainAtHomes(s.atHomes(ctx), &api.ExplainRequest{Class: revoke.GetClass(), Name: revoke.GetName()}, answer)
	for _, h := range answer.GetResource().GetHolders() {
		if revoke.GetFence() == 0 || revoke.GetFence() == h.GetFence() {
			return h, ""
		}
	}
	for _, h := range answer.GetHomes() {
		if h.GetProblem() != "" {
			return nil, unanswered(h.GetServer(), h.GetProblem())
		}
	}
	return nil, ""
}

// revokeHere asks the holder at this server as a home.
func (s *Server) revokeHere(req *api.Request, command registry.Command) *api.Reply {
	switch result := s.node.Home().Revoke(&command); result.Code {
	case registry.OK:
		return &api.Reply{Session: req.GetSession(), Sequence: req.GetSequence(), Code: api.Code_CODE_OK, Fence: result.Fence}
	case registry.Unavailable:
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, result.Message)
	}
	return s.revokeNone(req, "")
}

// revokeNone is the answer that nobody holds the lock or, if a home did not answer, that this is
// unknown.
func (s *Server) revokeNone(req *api.Request, unknown string) *api.Reply {
	if unknown != "" {
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, unknown)
	}
	return stream.Refusal(req, api.Code_CODE_NOT_FOUND, fmt.Sprintf("nobody holds %q", req.GetRevoke().GetName()))
}
