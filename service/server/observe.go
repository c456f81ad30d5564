package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/feed"
	"github.com/conclave-io/conclave/service/node"
	"github.com/conclave-io/conclave/service/registry"
)

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
		return s.spoken(ctx, err)
	}
	leader := s.awaitLeader(ctx)
	if address := s.node.ClientAddress(leader); address != "" {
		stream.SetTrailer(metadata.Pairs(leaderTrailer, address))
	}
	if begun || errors.Is(err, node.ErrStopped) {
		return unavailable("%s", s.disclaim(leader))
	}
	return status.Error(codes.FailedPrecondition, s.disclaim(leader))
}

// observe sends the state of an election, and again after each change, until this server
// ceases to lead. Several changes during one send are sent once, as the newest state.
func (s *Server) observe(ctx context.Context, name string, send func(*api.Observation) error) error {
	ctx, stop := s.live(ctx)
	defer stop()
	watch, err := s.node.Watch(ctx, registry.Election, name, false)
	if err != nil {
		return err
	}
	defer watch.Close()
	s.metrics.watching.Add(1)
	defer s.metrics.watching.Add(-1)
	told := feed.Election{Name: name}
	for {
		state, err := s.node.Read(ctx)
		if err != nil {
			return err
		}
		if err := mayRead(ctx, state.Rules(), registry.Election, name); err != nil {
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
