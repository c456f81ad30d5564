package guarded

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/act"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
	"github.com/conclave-io/conclave/internal/service/version"
)

// CompleteSessions completes a page of the sessions in the registry with those that homes keep.
func (d *Door) CompleteSessions(ctx context.Context, req *api.SessionsRequest, after registry.SessionID, answer *api.SessionsResponse) *api.SessionsResponse {
	switch {
	case !authn.IsForwarded(ctx):
		d.sessionsAtHomes(ctx, req, after, answer)
	case req.GetStale(): // asked by a member
		return d.sessionsHere(req, after)
	}
	return answer
}

// sessionsAtHomes adds to a page of sessions those kept at homes. A member that does
// not answer is left out.
func (d *Door) sessionsAtHomes(ctx context.Context, req *api.SessionsRequest, after registry.SessionID, answer *api.SessionsResponse) {
	here := func(context.Context) (*api.SessionsResponse, error) { return d.sessionsHere(req, after), nil }
	asked := &api.SessionsRequest{After: req.GetAfter(), Limit: req.GetLimit(), Stale: true}
	for _, m := range atMembers(ctx, d, here, forward.Asking(api.ConclaveClient.Sessions, asked)) {
		answer.Sessions = append(answer.Sessions, m.answer.GetSessions()...)
		answer.More = answer.More || m.answer.GetMore()
	}
	slices.SortFunc(answer.Sessions, func(a, b *api.Session) int { return bytes.Compare(a.GetId(), b.GetId()) })
	if most := stream.PageOf(req.GetLimit()); len(answer.Sessions) > most {
		answer.Sessions, answer.More = answer.Sessions[:most], true
	}
}

// sessionsHere returns the sessions at this server as a home.
func (d *Door) sessionsHere(req *api.SessionsRequest, after registry.SessionID) *api.SessionsResponse {
	page, left, more := d.cfg.Node.Home().Sessions(after, stream.PageOf(req.GetLimit()))
	answer := &api.SessionsResponse{More: more}
	for i := range page {
		one := stream.SessionProto(&page[i], left[i])
		one.Home = d.cfg.Server
		answer.Sessions = append(answer.Sessions, one)
	}
	return answer
}

// EndAtHome records the end of a session that a home keeps, and has the home end it. This
// server leads, and the log has decided that the caller may do it.
func (d *Door) EndAtHome(ctx context.Context, req *api.EndSessionRequest, command *registry.Command, unknown error) (*api.EndSessionResponse, error) {
	what := d.sessionAtHome(ctx, command.Session)
	if what == "" {
		return nil, unknown
	}
	if d.cfg.Node.Level() >= version.Access {
		by := command.Origin()
		rand.Read(by.Request[:]) // the log has answered the other number; never fails
		if err := act.Note(ctx, d.cfg.Node, by, "end-session", registry.ClipText(what+": "+req.GetReason())); err != nil {
			return nil, err
		}
	}
	return d.endSessionAtHome(ctx, req, command, unknown)
}

// sessionAtHome describes a session that a home keeps for the record, or returns "".
func (d *Door) sessionAtHome(ctx context.Context, id registry.SessionID) (what string) {
	before := id
	for i := len(before) - 1; i >= 0; i-- {
		if before[i]--; before[i] != 0xff {
			break
		}
	}
	found := new(api.SessionsResponse)
	d.sessionsAtHomes(d.itself(ctx), &api.SessionsRequest{After: before[:], Limit: 1}, before, found)
	for _, one := range found.GetSessions() {
		if registry.SessionID(one.GetId()) == id {
			return fmt.Sprintf("%v of %.64q at server %d", id, one.GetOwner(), one.GetHome())
		}
	}
	d.EachHold(ctx, func(res *api.Resource) { // programs in the process of a server have no other session
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
func (d *Door) endSessionAtHome(ctx context.Context, req *api.EndSessionRequest, command *registry.Command, unknown error) (*api.EndSessionResponse, error) {
	here := func(context.Context) (*api.EndSessionResponse, error) { return d.EndSessionHere(command) }
	asked := &api.EndSessionRequest{Id: req.GetId(), Reason: req.GetReason(), Home: true}
	for _, m := range atMembers(ctx, d, here, forward.Asking(api.ConclaveClient.EndSession, asked)) {
		switch {
		case m.err == nil:
			return m.answer, nil
		case status.Code(m.err) != codes.NotFound:
			unknown = status.Errorf(codes.Unavailable, "cannot find out whether server %d keeps the session: %s", m.server, api.Reason(m.err))
		}
	}
	return nil, unknown
}

// EndSessionHere ends a session that this server keeps as a home.
func (d *Door) EndSessionHere(command *registry.Command) (*api.EndSessionResponse, error) {
	holds, result := d.cfg.Node.Home().EndSession(command)
	if result.Code != registry.OK {
		return nil, act.Failure(result)
	}
	return &api.EndSessionResponse{Holds: uint32(holds)}, nil
}
