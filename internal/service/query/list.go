package query

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// List returns locks or elections.
func (c *Calls) List(ctx context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	class, problem := stream.ClassFromProto(req.GetClass())
	if problem != "" {
		return nil, status.Error(codes.InvalidArgument, problem)
	}
	each, err := listerOf(req)
	if err != nil {
		return nil, err
	}
	answer := new(api.ListResponse)
	complete := true
	look := func(state node.State) {
		may := admission.Reader(ctx, state.Rules(), class)
		answer.More, complete = each(state, class, may, stream.PageOf(req.GetLimit()), stream.WaitersOf(req.GetWaiters()), func(res *registry.Resource) {
			answer.Resources = append(answer.Resources, stream.ResourceProto(res))
		})
	}
	answer, err = forward.Read(ctx, c.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.List, req))
	if err == nil && !complete {
		return nil, status.Errorf(codes.ResourceExhausted, "order: more than %d names start with %.100q; give a longer prefix", registry.MaxRanked, req.GetPrefix())
	}
	if err != nil || class != registry.Lock || req.GetOrder() != api.Order_ORDER_NAME {
		return answer, err
	}
	return c.cfg.Guarded.CompleteList(ctx, req, answer)
}

// Explain returns who holds a resource, who waits, and how its last holds ended.
func (c *Calls) Explain(ctx context.Context, req *api.ExplainRequest) (*api.ExplainResponse, error) {
	class, problem := stream.ClassFromProto(req.GetClass())
	if problem == "" {
		problem = registry.ValidateName(req.GetName())
	}
	if problem != "" {
		return nil, status.Error(codes.InvalidArgument, problem)
	}
	answer := new(api.ExplainResponse)
	var hidden error
	look := func(state node.State) {
		if hidden = admission.MayRead(ctx, state.Rules(), class, req.GetName()); hidden == nil {
			explainFrom(state, class, req, answer)
		}
	}
	answer, err := forward.Read(ctx, c.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.Explain, req))
	if err == nil && hidden != nil {
		return nil, hidden
	}
	if err != nil || answer.GetGuard() == nil {
		return answer, err
	}
	return c.cfg.Guarded.CompleteExplain(ctx, req, answer)
}

// explainFrom fills in what a state says about a resource.
func explainFrom(state node.State, class registry.Class, req *api.ExplainRequest, answer *api.ExplainResponse) {
	res, held, past := state.Explain(class, req.GetName(), stream.WaitersOf(req.GetWaiters()))
	if held {
		answer.Resource = stream.ResourceProto(&res)
	}
	answer.Past = stream.ProtoList(past, stream.EndedProto)
	if g := state.Guarded().GuardOf(req.GetName()); class == registry.Lock && g != nil && g.Use.Guarded() {
		answer.Guard = &api.Guard{Prefix: g.Prefix, Algorithm: g.Use.Algorithm}
	}
}

// Waits returns the waiters that keep other holds meanwhile.
func (c *Calls) Waits(ctx context.Context, req *api.WaitsRequest) (*api.WaitsResponse, error) {
	answer := new(api.WaitsResponse)
	look := func(state node.State) {
		page, more := state.Waits(stream.PageOf(req.GetLimit()))
		answer.More = more
		locks, elections := admission.Reader(ctx, state.Rules(), registry.Lock), admission.Reader(ctx, state.Rules(), registry.Election)
		may := func(class registry.Class, name string) bool {
			return locks == nil || class == registry.Lock && locks(name) || class == registry.Election && elections(name)
		}
		for i := range page {
			if w := &page[i]; may(w.Class, w.Name) {
				w.Keeps = slices.DeleteFunc(w.Keeps, func(k registry.Kept) bool { return !may(k.Class, k.Name) })
				answer.Waits = append(answer.Waits, stream.WaitingProto(w))
			}
		}
	}
	return forward.Read(ctx, c.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.Waits, req))
}

// Sessions returns the live sessions.
func (c *Calls) Sessions(ctx context.Context, req *api.SessionsRequest) (*api.SessionsResponse, error) {
	var after registry.SessionID
	if id := req.GetAfter(); len(id) != 0 && len(id) != len(after) {
		return nil, status.Errorf(codes.InvalidArgument, "after: %d bytes: the public id of a session has %d", len(id), len(after))
	}
	copy(after[:], req.GetAfter())
	answer := new(api.SessionsResponse)
	look := func(state node.State) {
		page, more := state.Sessions(after, stream.PageOf(req.GetLimit()))
		answer.More = more
		for i, left := range c.remaining(ctx, page) {
			answer.Sessions = append(answer.Sessions, stream.SessionProto(&page[i], left))
		}
	}
	answer, err := forward.Read(ctx, c.cfg.Forward, req.GetStale(), answer, look, forward.Asking(api.ConclaveClient.Sessions, req))
	if err != nil {
		return answer, err
	}
	return c.cfg.Guarded.CompleteSessions(ctx, req, after, answer), nil
}

// remaining returns the remaining time of each session, as far as this server knows.
func (c *Calls) remaining(ctx context.Context, sessions []registry.Session) []int64 {
	left := make([]int64, len(sessions))
	// This fails if the server is stopping: then nothing is known.
	_ = c.cfg.Node.View(ctx, func(r *replica.Replica) {
		for i := range sessions {
			left[i] = r.Remaining(sessions[i].ID)
		}
	})
	return left
}

// lister calls see for at most limit resources of a list that the caller may read, and
// reports whether there are more. It returns ok = false if there are too many to sort. The
// arguments of see are overwritten afterwards.
type lister func(state node.State, class registry.Class, may func(string) bool, limit, waiters int, see func(*registry.Resource)) (more, ok bool)

// listerOf returns the lister for the order that a request asks for.
func listerOf(req *api.ListRequest) (lister, error) {
	order := registry.Order(req.GetOrder())
	switch {
	case req.GetOrder() == api.Order_ORDER_NAME:
		return func(state node.State, class registry.Class, may func(string) bool, limit, waiters int, see func(*registry.Resource)) (more, ok bool) {
			return listByName(state, class, req, may, limit, waiters, see), true
		}, nil
	case req.GetOrder() < 0 || !order.Valid():
		return nil, status.Errorf(codes.InvalidArgument, "order: %d: must be 0 (name), 1 (queue) or 2 (age)", req.GetOrder())
	case req.GetAfter() != "":
		return nil, status.Errorf(codes.InvalidArgument, "after: %.100q: only a list ordered by name has further pages", req.GetAfter())
	}
	return func(state node.State, class registry.Class, may func(string) bool, limit, waiters int, see func(*registry.Resource)) (more, ok bool) {
		most := limit
		if may != nil {
			most = registry.MaxRanked
		}
		page, more, ok := state.Rank(class, req.GetPrefix(), order, most, waiters)
		if may != nil {
			page = slices.DeleteFunc(page, func(res registry.Resource) bool { return !may(res.Name) })
			more = len(page) > limit
		}
		for i := range page[:min(limit, len(page))] {
			see(&page[i])
		}
		return more, ok
	}, nil
}

// listByName lists by name. Names that the caller may not read leave no trace, not even at
// the borders of pages.
func listByName(state node.State, class registry.Class, req *api.ListRequest, may func(string) bool, limit, waiters int, see func(*registry.Resource)) (more bool) {
	seen := 0
	state.Visit(class, req.GetPrefix(), req.GetAfter(), waiters, func(res *registry.Resource) bool {
		if may != nil && !may(res.Name) {
			return true
		}
		if more = seen == limit; !more {
			seen++
			see(res)
		}
		return !more
	})
	return more
}
