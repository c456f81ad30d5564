package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/host"
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
// homes. They are answered when all homes have been asked. On the stream of a home, divert also removes the requests that the rules refuse
// and, on every stream, those that exceed their principal's rate.
func (s *Server) divert(ctx context.Context, frame *api.ClientFrame, out *outbox) {
	kept := frame.Requests[:0]
	for _, req := range frame.Requests {
		if refusal := s.gate.TooFast(out.sessions.caller, req); refusal != nil {
			out.refuse([]*api.Reply{refusal})
			continue
		}
		if req.GetRevoke() == nil || !s.revokesGuarded(ctx, req) {
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

// fromMember is the answer of one member.
type fromMember[T any] struct {
	server uint64
	answer T
	err    error
}

// atMembers asks all members of the view that this server knows, at the same time: itself
// by calling here, the others by calling there.
func atMembers[T any](ctx context.Context, s *Server, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) []fromMember[T] {
	return atEachMember(ctx, s, here, func(ctx context.Context, _ uint64, member api.ConclaveClient) (T, error) { return there(ctx, member) })
}

// atEachMember is atMembers for calls that depend on the member.
func atEachMember[T any](ctx context.Context, s *Server, here func(context.Context) (T, error), there func(context.Context, uint64, api.ConclaveClient) (T, error)) []fromMember[T] {
	ctx, cancel := forward.WithDeadline(ctx)
	defer cancel()
	var all []fromMember[T]
	err := s.node.View(ctx, func(r *replica.Replica) {
		for _, m := range r.Registry().Guarded().Members {
			all = append(all, fromMember[T]{server: m.Server})
		}
	})
	if err != nil {
		return nil
	}
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() {
			m := &all[i]
			if m.server == s.cfg.ID {
				m.answer, m.err = here(ctx)
				return
			}
			vouched, client, err := s.forward.Reach(ctx, m.server)
			if err != nil {
				m.err = err
				return
			}
			m.answer, m.err = there(vouched, m.server, client)
		})
	}
	asking.Wait()
	return all
}

// explainAtHomes completes the description of a guarded lock with what each member says: who
// holds it there and who waits for it there.
func (s *Server) explainAtHomes(ctx context.Context, req *api.ExplainRequest, answer *api.ExplainResponse) error {
	here := func(context.Context) (*api.ExplainResponse, error) { return s.explainHere(req) }
	all := &api.Resource{Name: req.GetName(), Class: req.GetClass(), Limit: 1}
	_ = s.node.View(ctx, func(r *replica.Replica) {
		if g := r.Registry().Guarded().GuardOf(req.GetName()); g != nil {
			all.Limit = host.Units(g.Use)
		}
	})
	asked := &api.ExplainRequest{Class: req.GetClass(), Name: req.GetName(), Waiters: req.GetWaiters(), Stale: true}
	for _, m := range atMembers(ctx, s, here, forward.Asking(api.ConclaveClient.Explain, asked)) {
		home := &api.AtHome{Server: m.server}
		if m.err != nil {
			home.Problem = api.Reason(m.err)
		} else if home.Resource = m.answer.GetResource(); home.Resource != nil {
			all.Holders = append(all.Holders, home.Resource.GetHolders()...)
			all.Waiters = append(all.Waiters, home.Resource.GetWaiters()...)
			all.QueueLength += home.Resource.GetQueueLength()
		}
		answer.Homes = append(answer.Homes, home)
		answer.Past = append(answer.Past, m.answer.GetPast()...)
	}
	slices.SortFunc(answer.Past, func(a, b *api.Ended) int { return cmp.Compare(b.GetFence(), a.GetFence()) })
	answer.Past = answer.Past[:min(len(answer.Past), registry.MaxPast)]
	if answer.Resource = nil; len(all.Holders) > 0 {
		answer.Resource = all
	}
	return s.asked(ctx, len(answer.Homes))
}

// asked returns an error if no home was asked because this server is stopping.
func (s *Server) asked(ctx context.Context, homes int) error {
	if homes > 0 {
		return nil
	}
	return s.forward.Status(ctx, s.node.View(ctx, func(*replica.Replica) {}))
}

// requireHome returns an error unless this server takes part in the view. After a restart, clients of
// its former seat may hold locks that this process does not know.
func (s *Server) requireHome() error {
	if !s.node.Home().IsMember() {
		return status.Errorf(codes.Unavailable, "server %d takes no part in the view", s.cfg.ID)
	}
	return nil
}

// explainHere returns the description of a lock at this server as a home.
func (s *Server) explainHere(req *api.ExplainRequest) (*api.ExplainResponse, error) {
	if err := s.requireHome(); err != nil {
		return nil, err
	}
	answer := new(api.ExplainResponse)
	res, known, past := s.node.Home().Explain(req.GetName(), waiters(req.GetWaiters()))
	if known {
		answer.Resource = stream.ResourceProto(&res)
	}
	answer.Past = stream.ProtoList(past, stream.EndedProto)
	return answer, nil
}

// listAtHomes adds to a list by name the guarded locks that the members report, and the members
// that do not answer.
func (s *Server) listAtHomes(ctx context.Context, req *api.ListRequest, answer *api.ListResponse) error {
	if !s.lists(ctx, req.GetPrefix()) {
		return s.asked(ctx, 0)
	}
	homes := 0
	here := func(ctx context.Context) (*api.ListResponse, error) { return s.listHere(ctx, req) }
	asked := &api.ListRequest{Prefix: req.GetPrefix(), After: req.GetAfter(), Limit: req.GetLimit(), Waiters: req.GetWaiters(), Stale: true}
	for _, m := range atMembers(ctx, s, here, forward.Asking(api.ConclaveClient.List, asked)) {
		if homes++; m.err != nil {
			answer.Silent = append(answer.Silent, m.server)
		}
		answer.Resources = append(answer.Resources, m.answer.GetResources()...)
		answer.More = answer.More || m.answer.GetMore()
	}
	answer.Resources = merged(answer.Resources)
	if most := limited(req.GetLimit()); len(answer.Resources) > most {
		answer.Resources, answer.More = answer.Resources[:most], true
	}
	return s.asked(ctx, homes)
}

// merged returns resources by name, each once, with everything reported about it.
func merged(list []*api.Resource) (all []*api.Resource) {
	slices.SortStableFunc(list, func(a, b *api.Resource) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, r := range list {
		if len(all) == 0 || all[len(all)-1].GetName() != r.GetName() {
			all = append(all, r)
			continue
		}
		one := all[len(all)-1]
		one.Holders, one.Waiters = append(one.Holders, r.GetHolders()...), append(one.Waiters, r.GetWaiters()...)
		one.QueueLength += r.GetQueueLength()
	}
	return all
}

// lists reports whether an algorithm guards names that start with a prefix and that the caller may
// read. Others are not told which prefixes are guarded.
func (s *Server) lists(ctx context.Context, prefix string) (live bool) {
	rules := s.rules()
	who, err := authn.CallerOf(ctx)
	reads := func(prefix string) bool {
		return rules.Mode() != access.Closed || err == nil && rules.Rights(who.Principal).Somewhere(access.Read, access.Lock, prefix)
	}
	_ = s.node.View(ctx, func(r *replica.Replica) { // fails if the server is stopping: then nothing is listed
		live = slices.ContainsFunc(r.Registry().Guarded().Guards, func(g view.Guard) bool {
			switch {
			case !g.Use.Live():
				return false
			case strings.HasPrefix(g.Prefix, prefix):
				return reads(g.Prefix)
			}
			return strings.HasPrefix(prefix, g.Prefix) && reads(prefix)
		})
	})
	return live
}

// listHere returns the locks at this server as a home that the caller may read.
func (s *Server) listHere(ctx context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	if err := s.requireHome(); err != nil {
		return nil, err
	}
	found, more := s.readableHere(ctx, req, limited(req.GetLimit()))
	answer := &api.ListResponse{More: more}
	_ = s.node.View(ctx, func(r *replica.Replica) {
		for i := range found {
			res := stream.ResourceProto(&found[i])
			if g := r.Registry().Guarded().GuardOf(res.GetName()); g != nil {
				res.Guard, res.Limit = g.Use.Algorithm, host.Units(g.Use)
			}
			answer.Resources = append(answer.Resources, res)
		}
	})
	return answer, nil
}

// readableHere returns the first locks of a list that the caller may read, and whether there are
// more than most.
func (s *Server) readableHere(ctx context.Context, req *api.ListRequest, most int) (found []registry.Resource, more bool) {
	may, after := admission.Reader(ctx, s.rules(), registry.Lock), req.GetAfter()
	for further := true; further; {
		var page []registry.Resource
		page, further = s.node.Home().List(req.GetPrefix(), after, pageSize, waiters(req.GetWaiters()))
		for i := range page {
			after = page[i].Name
			switch {
			case may != nil && !may(after):
			case len(found) == most:
				return found, true
			default:
				found = append(found, page[i])
			}
		}
	}
	return found, false
}
