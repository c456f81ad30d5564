package server

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

// rankOf returns what reads a list in the order that a request asks for, and reports
// ok = false if there is too much to put in order.
func rankOf(req *api.ListRequest) (func(state node.State, class registry.Class, may func(string) bool, limit, waiters int) (page []registry.Resource, more, ok bool), error) {
	order := registry.Order(req.GetOrder())
	switch {
	case req.GetOrder() == api.Order_ORDER_NAME:
		return func(state node.State, class registry.Class, may func(string) bool, limit, waiters int) ([]registry.Resource, bool, bool) {
			page, more := listReadable(state, class, req, may, limit, waiters)
			return page, more, true
		}, nil
	case req.GetOrder() < 0 || !order.Valid():
		return nil, status.Errorf(codes.InvalidArgument, "order: %d: must be 0 (name), 1 (queue) or 2 (age)", req.GetOrder())
	case req.GetAfter() != "":
		return nil, status.Errorf(codes.InvalidArgument, "after: %.100q: only a list in the order of names has further pages", req.GetAfter())
	}
	return func(state node.State, class registry.Class, may func(string) bool, limit, waiters int) ([]registry.Resource, bool, bool) {
		if may == nil {
			return state.Rank(class, req.GetPrefix(), order, limit, waiters)
		}
		page, _, ok := state.Rank(class, req.GetPrefix(), order, registry.MaxRanked, waiters)
		page = slices.DeleteFunc(page, func(res registry.Resource) bool { return !may(res.Name) })
		return page[:min(limit, len(page))], len(page) > limit, ok
	}, nil
}

// listReadable lists the resources that the caller may read: what it may not read leaves
// no trace, also not between the pages.
func listReadable(state node.State, class registry.Class, req *api.ListRequest, may func(string) bool, limit, waiters int) (page []registry.Resource, more bool) {
	if may == nil {
		return state.List(class, req.GetPrefix(), req.GetAfter(), limit, waiters)
	}
	for after, left := req.GetAfter(), true; left; {
		var part []registry.Resource
		part, left = state.List(class, req.GetPrefix(), after, limit, waiters)
		for i := range part {
			after = part[i].Name
			switch {
			case !may(after):
			case len(page) == limit:
				return page, true
			default:
				page = append(page, part[i])
			}
		}
	}
	return page, false
}
