package guarded

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// CompleteList completes a list of locks by name, which has what the log knows, with what homes know.
func (d *Door) CompleteList(ctx context.Context, req *api.ListRequest, answer *api.ListResponse) (*api.ListResponse, error) {
	switch {
	case authn.IsForwarded(ctx) && req.GetStale(): // asked by a member
		return d.listHere(ctx, req)
	case answer.GetHomesAsked(): // by the leader, which knows all that is guarded, and where
		return answer, nil
	}
	answer.HomesAsked = true
	return answer, d.listAtHomes(ctx, req, answer)
}

// CompleteExplain completes the description of a guarded lock, which has what the log knows, with
// what homes know.
func (d *Door) CompleteExplain(ctx context.Context, req *api.ExplainRequest, answer *api.ExplainResponse) (*api.ExplainResponse, error) {
	switch {
	case authn.IsForwarded(ctx) && req.GetStale(): // asked by a member
		here, err := d.explainHere(req)
		if err == nil {
			here.Guard = answer.GetGuard()
		}
		return here, err
	case len(answer.GetHomes()) > 0: // the leader has asked them, which knows where they are
		return answer, nil
	}
	return answer, d.explainAtHomes(ctx, req, answer)
}

// explainAtHomes completes the description of a guarded lock with what each member says: who
// holds it there and who waits for it there.
func (d *Door) explainAtHomes(ctx context.Context, req *api.ExplainRequest, answer *api.ExplainResponse) error {
	here := func(context.Context) (*api.ExplainResponse, error) { return d.explainHere(req) }
	all := &api.Resource{Name: req.GetName(), Class: req.GetClass(), Limit: 1}
	_ = d.cfg.Node.View(ctx, func(r *replica.Replica) {
		if g := r.Registry().Guarded().GuardOf(req.GetName()); g != nil {
			all.Limit = host.Units(g.Use)
		}
	})
	asked := &api.ExplainRequest{Class: req.GetClass(), Name: req.GetName(), Waiters: req.GetWaiters(), Stale: true}
	for _, m := range atMembers(ctx, d, here, forward.Asking(api.ConclaveClient.Explain, asked)) {
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
	return d.asked(ctx, len(answer.Homes))
}

// explainHere returns the description of a lock at this server as a home.
func (d *Door) explainHere(req *api.ExplainRequest) (*api.ExplainResponse, error) {
	if err := d.requireHome(); err != nil {
		return nil, err
	}
	answer := new(api.ExplainResponse)
	res, known, past := d.cfg.Node.Home().Explain(req.GetName(), stream.WaitersOf(req.GetWaiters()))
	if known {
		answer.Resource = stream.ResourceProto(&res)
	}
	answer.Past = stream.ProtoList(past, stream.EndedProto)
	return answer, nil
}

// listAtHomes adds to a list by name the guarded locks that the members report, and the members
// that do not answer.
func (d *Door) listAtHomes(ctx context.Context, req *api.ListRequest, answer *api.ListResponse) error {
	if !d.guardsUnder(ctx, req.GetPrefix()) {
		return d.asked(ctx, 0)
	}
	homes := 0
	here := func(ctx context.Context) (*api.ListResponse, error) { return d.listHere(ctx, req) }
	asked := &api.ListRequest{Prefix: req.GetPrefix(), After: req.GetAfter(), Limit: req.GetLimit(), Waiters: req.GetWaiters(), Stale: true}
	for _, m := range atMembers(ctx, d, here, forward.Asking(api.ConclaveClient.List, asked)) {
		if homes++; m.err != nil {
			answer.Silent = append(answer.Silent, m.server)
		}
		answer.Resources = append(answer.Resources, m.answer.GetResources()...)
		answer.More = answer.More || m.answer.GetMore()
	}
	answer.Resources = merged(answer.Resources)
	if most := stream.PageOf(req.GetLimit()); len(answer.Resources) > most {
		answer.Resources, answer.More = answer.Resources[:most], true
	}
	return d.asked(ctx, homes)
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

// listHere returns the locks at this server as a home that the caller may read.
func (d *Door) listHere(ctx context.Context, req *api.ListRequest) (*api.ListResponse, error) {
	if err := d.requireHome(); err != nil {
		return nil, err
	}
	found, more := d.readableHere(ctx, req, stream.PageOf(req.GetLimit()))
	answer := &api.ListResponse{More: more}
	_ = d.cfg.Node.View(ctx, func(r *replica.Replica) {
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
func (d *Door) readableHere(ctx context.Context, req *api.ListRequest, most int) (found []registry.Resource, more bool) {
	may, after := admission.Reader(ctx, d.cfg.Node.Rules(), registry.Lock), req.GetAfter()
	for further := true; further; {
		var page []registry.Resource
		page, further = d.cfg.Node.Home().List(req.GetPrefix(), after, stream.WatchPage, stream.WaitersOf(req.GetWaiters()))
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
