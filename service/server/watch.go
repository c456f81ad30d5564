package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
	"github.com/conclave-io/conclave/service/feed"
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
	told := feed.Watch{Class: class, Prefix: prefix}
	err = s.sendAll(ctx, &told, send)
	for err == nil {
		select {
		case _, open := <-watch.Signal():
			if !open {
				return node.ErrNotLeader
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if names, all := watch.Take(); all {
			err = s.sendAll(ctx, &told, send)
		} else {
			err = s.sendChanged(ctx, &told, names, send)
		}
	}
	return err
}

// sendAll sends everything under a prefix, and what of the known is gone.
func (s *Server) sendAll(ctx context.Context, told *feed.Watch, send func(*api.Changes) error) error {
	told.Begin()
	for more := true; more; {
		state, err := s.node.Read(ctx)
		if err != nil {
			return err
		}
		var page *api.Changes
		page, more = told.Page(state.Version)
		if err := send(page); err != nil {
			return err
		}
	}
	return nil
}

// sendChanged sends the resources of the given names as they are now.
func (s *Server) sendChanged(ctx context.Context, told *feed.Watch, names []string, send func(*api.Changes) error) error {
	state, err := s.node.Read(ctx)
	if err != nil {
		return err
	}
	if changes := told.Changed(state.Version, names); changes != nil {
		return send(changes)
	}
	return nil
}
