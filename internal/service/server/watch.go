package server

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// Watch streams the resources under a prefix. If this server does not lead, it ends as
// Observe does.
func (s service) Watch(req *api.WatchRequest, stream grpc.ServerStreamingServer[api.Changes]) error {
	begun := false
	err := s.watch(stream.Context(), req, func(c *api.Changes) error {
		begun = true
		return stream.Send(c)
	})
	return s.conclude(stream, begun, err)
}

// watch sends the holds under a prefix, a page at a time, and then changes, until this server
// ceases to lead. The first message is sent even if nothing is held, so that the reader
// knows that it has seen everything.
func (s *Server) watch(ctx context.Context, req *api.WatchRequest, send func(*api.Changes) error) error {
	told, interval, err := told(req)
	if err != nil {
		return err
	}
	ctx, stop := s.forward.Serving(ctx)
	defer stop()
	watch, err := s.node.Watch(ctx, told.Class, told.Prefix, true)
	if err != nil {
		return err
	}
	defer watch.Close()
	s.metrics.Watching.Add(1)
	defer s.metrics.Watching.Add(-1)
	told.Readable = func(state *registry.Version) func(string) bool {
		return admission.Reader(ctx, state.Rules(), told.Class)
	}
	send = atMost(int(req.GetMost()), &told, send)
	err = s.sendAll(ctx, &told, send)
	for err == nil {
		if err := wait.For(ctx, interval); err != nil {
			return err
		}
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

// told returns the watch that a request asks for, and the least time between two messages.
func told(req *api.WatchRequest) (stream.Watch, time.Duration, error) {
	class, problem := stream.ClassFromProto(req.GetClass())
	if problem != "" {
		return stream.Watch{}, 0, status.Error(codes.InvalidArgument, problem)
	}
	interval := time.Duration(req.GetIntervalNs())
	if interval < 0 || interval > time.Minute {
		return stream.Watch{}, 0, status.Errorf(codes.InvalidArgument, "interval_ns: %d: must be between 0 and %d (1 min)", req.GetIntervalNs(), time.Minute)
	}
	return stream.Watch{Class: class, Prefix: req.GetPrefix(), Waiters: stream.WaitersOf(req.GetWaiters())}, interval, nil
}

// atMost returns a send that fails once more than most resources were sent and are
// held; 0 sets no bound.
func atMost(most int, told *stream.Watch, send func(*api.Changes) error) func(*api.Changes) error {
	if most == 0 {
		return send
	}
	return func(c *api.Changes) error {
		if told.Known() > most {
			return status.Errorf(codes.ResourceExhausted, "prefix: %q: over %d names begin with it; give a longer one", told.Prefix, most)
		}
		return send(c)
	}
}

// sendAll sends everything under a prefix, and which known resources are gone.
func (s *Server) sendAll(ctx context.Context, told *stream.Watch, send func(*api.Changes) error) error {
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

// sendChanged sends the current state of the resources with the given names.
func (s *Server) sendChanged(ctx context.Context, told *stream.Watch, names []string, send func(*api.Changes) error) error {
	state, err := s.node.Read(ctx)
	if err != nil {
		return err
	}
	if told.Reruled(state.Version) {
		return s.sendAll(ctx, told, send)
	}
	if changes := told.Changed(state.Version, names); changes != nil {
		return send(changes)
	}
	return nil
}

// Observe streams the state of an election. Only the leader serves it: another server
// ends the stream at once with FAILED_PRECONDITION, and a server that ceases to lead
// ends it with UNAVAILABLE. Both name the leader, if known, in the trailer
// "conclave-leader".
func (s service) Observe(req *api.ObserveRequest, stream grpc.ServerStreamingServer[api.Observation]) error {
	if problem := registry.ValidateName(req.GetName()); problem != "" {
		return status.Error(codes.InvalidArgument, problem)
	}
	ctx := stream.Context()
	begun := false
	err := s.observe(ctx, req.GetName(), func(o *api.Observation) error {
		begun = true
		return stream.Send(o)
	})
	return s.conclude(stream, begun, err)
}

// conclude ends a stream, whether it has begun or not, and names the leader if that is
// the reason.
func (s *Server) conclude(stream grpc.ServerStream, begun bool, err error) error {
	ctx := stream.Context()
	if !errors.Is(err, node.ErrNotLeader) && !errors.Is(err, node.ErrStopped) {
		return s.forward.Status(ctx, err)
	}
	leader := s.forward.AwaitLeader(ctx)
	if address := s.node.ClientAddress(leader); address != "" {
		stream.SetTrailer(metadata.Pairs(forward.LeaderTrailer, address))
	}
	if begun || errors.Is(err, node.ErrStopped) {
		return status.Errorf(codes.Unavailable, "%s", s.forward.NotLeading(leader))
	}
	return status.Error(codes.FailedPrecondition, s.forward.NotLeading(leader))
}

// observe sends the state of an election, and again after each change, until this server
// ceases to lead. Several changes during one send are sent once, as the newest state.
func (s *Server) observe(ctx context.Context, name string, send func(*api.Observation) error) error {
	ctx, stop := s.forward.Serving(ctx)
	defer stop()
	watch, err := s.node.Watch(ctx, registry.Election, name, false)
	if err != nil {
		return err
	}
	defer watch.Close()
	s.metrics.Watching.Add(1)
	defer s.metrics.Watching.Add(-1)
	told := stream.Election{Name: name}
	for {
		state, err := s.node.Read(ctx)
		if err != nil {
			return err
		}
		if err := admission.MayRead(ctx, state.Rules(), registry.Election, name); err != nil {
			return err
		}
		if news := told.News(state.Version); news != nil {
			if err := send(news); err != nil {
				return err
			}
		}
		select {
		case _, open := <-watch.Signal():
			if !open {
				return node.ErrNotLeader
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
