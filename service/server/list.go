package server

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

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
