package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// LeaderTrailer has the leader's client address, if known, when a server refuses a
// call because it does not lead.
const LeaderTrailer = "conclave-leader"

// Leader returns the id of the leader, or 0 if none is known.
func (f *Forwarder) Leader() uint64 { return f.cfg.Node.Metrics().Leader.Load() }

// AwaitLeader returns the id of the leader. If none is known it waits for at most two
// heartbeats, since an election takes less; then it returns 0.
func (f *Forwarder) AwaitLeader(ctx context.Context) (leader uint64) {
	ctx, cancel := context.WithTimeout(ctx, 2*f.cfg.Heartbeat)
	defer cancel()
	for {
		err := f.cfg.Node.View(ctx, func(r *replica.Replica) { leader = r.Leader() })
		if errors.Is(err, node.ErrStopped) {
			return f.Successor()
		}
		if leader != 0 {
			return leader
		}
		if wait.For(ctx, f.LookEvery()) != nil {
			return 0
		}
	}
}

// Successor returns the last known leader, unless it was this server.
func (f *Forwarder) Successor() uint64 {
	if leader := f.Leader(); leader != f.cfg.Server {
		return leader
	}
	return 0
}

// LookEvery is how often to check whether there is a leader.
func (f *Forwarder) LookEvery() time.Duration { return f.cfg.Heartbeat / 5 }

// NotLeading returns why this server, which knows of a leader or of none, does not accept a request.
func (f *Forwarder) NotLeading(leader uint64) string {
	switch {
	case f.cfg.Stopping():
		return fmt.Sprintf("server %d is stopping", f.cfg.Server)
	case leader == 0:
		return fmt.Sprintf("server %d does not lead, and knows no leader", f.cfg.Server)
	case leader == f.cfg.Server:
		return fmt.Sprintf("server %d led, lost that, and leads again", f.cfg.Server)
	}
	return fmt.Sprintf("server %d does not lead, server %d does", f.cfg.Server, leader)
}

// Status turns an error into a status for the caller.
func (f *Forwarder) Status(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, node.ErrStopped), errors.Is(context.Cause(ctx), node.ErrStopped):
		return status.Errorf(codes.Unavailable, "server %d is stopping", f.cfg.Server)
	case errors.Is(err, node.ErrNotLeader):
		leader := f.Leader()
		// This fails outside of gRPC, where nobody reads the trailer.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(LeaderTrailer, f.cfg.Node.ClientAddress(leader)))
		return status.Error(codes.FailedPrecondition, f.NotLeading(leader))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(context.Cause(ctx), context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return status.Error(codes.Unavailable, "no quorum answered in time")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller cancelled the call")
	case errors.Is(err, ErrMoved):
		return status.Error(codes.Unavailable, err.Error())
	}
	return err
}
