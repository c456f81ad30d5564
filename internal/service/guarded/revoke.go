package guarded

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// The log does not know who holds a guarded lock. So the leader finds the holder, has the log
// decide about the request and record it, and then asks the homes.

// Revoke asks the holders of a lock at all homes to release it (H9). This server leads.
func (d *Door) Revoke(ctx context.Context, req *api.Request) (*api.Reply, error) {
	held, unknown := d.heldAtHomes(ctx, req.GetRevoke())
	logged := proto.CloneOf(req)
	logged.Home = 0
	if held != nil {
		logged.GetRevoke().Fence = held.GetFence()
	}
	reply, err := d.cfg.Decide(ctx, logged)
	if err != nil || reply.GetCode() != api.Code_CODE_NOT_FOUND {
		return reply, err // refused, or agreement guards the lock by now
	}
	if held == nil {
		return d.revokeNone(req, unknown), nil
	}
	who, _ := authn.CallerOf(ctx)
	command, _ := who.Command(req) // the caller has checked it
	here := func(context.Context) (*api.Reply, error) { return d.RevokeHere(req, command), nil }
	answer := d.revokeNone(req, "")
	for _, r := range atEachMember(ctx, d, here, func(ctx context.Context, id uint64, member api.ConclaveClient) (*api.Reply, error) {
		asked := who.PassedOn(req)
		asked.Home = id
		return member.Do(ctx, asked)
	}) {
		switch {
		case r.err != nil:
			answer = d.revokeNone(req, unanswered(r.server, api.Reason(r.err)))
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
func (d *Door) heldAtHomes(ctx context.Context, revoke *api.Revoke) (held *api.Holder, unknown string) {
	answer := new(api.ExplainResponse)
	d.explainAtHomes(d.itself(ctx), &api.ExplainRequest{Class: revoke.GetClass(), Name: revoke.GetName()}, answer)
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

// RevokeHere asks the holder at this server as a home.
func (d *Door) RevokeHere(req *api.Request, command registry.Command) *api.Reply {
	switch result := d.cfg.Node.Home().Revoke(&command); result.Code {
	case registry.OK:
		return &api.Reply{Session: req.GetSession(), Sequence: req.GetSequence(), Code: api.Code_CODE_OK, Fence: result.Fence}
	case registry.Unavailable:
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, result.Message)
	}
	return d.revokeNone(req, "")
}

// revokeNone is the answer that nobody holds the lock or, if a home did not answer, that this is
// unknown.
func (d *Door) revokeNone(req *api.Request, unknown string) *api.Reply {
	if unknown != "" {
		return stream.Refusal(req, api.Code_CODE_UNAVAILABLE, unknown)
	}
	return stream.Refusal(req, api.Code_CODE_NOT_FOUND, fmt.Sprintf("nobody holds %q", req.GetRevoke().GetName()))
}
