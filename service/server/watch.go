package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

// Watch streams the resources under a prefix. It ends as Observe does when this
// server does not lead.
func (s service) Watch(req *api.WatchRequest, stream grpc.ServerStreamingServer[api.Changes]) error {
	class, problem := convert.Class(req.GetClass())
	if problem != "" {
		return status.Error(codes.InvalidArgument, problem)
	}
	begun := false
	err := s.watch(stream.Context(), class, req.GetPrefix(), func(c *api.Changes) error {
		begun = true
		return stream.Send(c)
	})
	return s.conclude(stream, begun, err)
}

// watch sends what is held under a prefix, a page at a time, and then what
// changes, until this server ceases to lead. The first message is sent even if
// nothing is held: the reader then knows that it has seen everything.
func (s *Server) watch(ctx context.Context, class registry.Class, prefix string, send func(*api.Changes) error) error {
	ctx, stop := s.live(ctx)
	defer stop()
	watch, err := s.node.Watch(ctx, class, prefix, true)
	if err != nil {
		return err
	}
	defer watch.Close()
	s.metrics.watches.Inc()
	defer s.metrics.watches.Dec()
	known := make(map[string]bool)
	if err := s.sendAll(ctx, class, prefix, known, send); err != nil {
		return err
	}
	for {
		select {
		case _, open := <-watch.Signal():
			if !open {
				return node.ErrNotLeader
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		names, all := watch.Take()
		if all {
			err = s.sendAll(ctx, class, prefix, known, send)
		} else {
			err = s.sendChanged(ctx, class, names, known, send)
		}
		if err != nil {
			return err
		}
	}
}

// sendAll sends everything under a prefix, and what of the known is gone.
func (s *Server) sendAll(ctx context.Context, class registry.Class, prefix string, known map[string]bool, send func(*api.Changes) error) error {
	gone := make(map[string]bool, len(known))
	for name := range known {
		gone[name] = true
	}
	after := ""
	for more := true; more; {
		changes := &api.Changes{Reset_: after == "" && len(known) == 0}
		state, err := s.node.Read(ctx)
		if err != nil {
			return err
		}
		var page []registry.Resource
		page, more = state.List(class, prefix, after, pageSize, defaultWaiters)
		for i := range page {
			changes.Resources = append(changes.Resources, convert.Resource(&page[i]))
		}
		for _, res := range changes.GetResources() {
			after = res.GetName()
			known[after] = true
			delete(gone, after)
		}
		if changes.More = more; !more {
			for name := range gone {
				delete(known, name)
				changes.Gone = append(changes.Gone, name)
			}
		}
		if err := send(changes); err != nil {
			return err
		}
	}
	return nil
}

// sendChanged sends the resources of the given names as they are now.
func (s *Server) sendChanged(ctx context.Context, class registry.Class, names []string, known map[string]bool, send func(*api.Changes) error) error {
	changes := new(api.Changes)
	state, err := s.node.Read(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		res, held, _ := state.Explain(class, name, defaultWaiters)
		if held {
			known[name] = true
			changes.Resources = append(changes.Resources, convert.Resource(&res))
		} else if known[name] {
			delete(known, name)
			changes.Gone = append(changes.Gone, name)
		}
	}
	if len(changes.GetResources())+len(changes.GetGone()) == 0 {
		return nil
	}
	return send(changes)
}
