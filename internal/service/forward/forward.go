// Package forward finds the leader and passes calls on to it, and to other servers, on behalf of
// their callers. It also decides how long a call may take.
package forward

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
)

// ErrMoved is the error of an attempt that is worth repeating once the leader is found.
var ErrMoved = errors.New("the leader changed")

// Config sets up a Forwarder.
type Config struct {
	// Server is the id of this server.
	Server uint64
	Node   *node.Node
	// Heartbeat is the time between two heartbeats of the leader.
	Heartbeat time.Duration
	// Stopping reports whether this server is about to stop.
	Stopping func() bool
	// Recheck returns an error if the caller may no longer have what was read for it here.
	Recheck func(context.Context) error
}

// Forwarder passes the calls of one server on.
type Forwarder struct {
	cfg   Config
	ctx   context.Context // ends when the server stops
	conns conns
	pace  pace
}

// New returns the forwarder of a server that stops when ctx ends.
func New(ctx context.Context, cfg Config) *Forwarder {
	return &Forwarder{cfg: cfg, ctx: ctx, conns: newConns(cfg.Node)}
}

// Close closes the connections to other servers.
func (f *Forwarder) Close() { f.conns.Close() }

// OnLeader has the leader do something: it calls here if this server leads, otherwise
// there, with a connection to the leader. It retries until shortly before the deadline;
// without a deadline, until no leader was found for the default deadline. A call that was
// passed on to this server is not passed on again.
func OnLeader[T any](ctx context.Context, f *Forwarder, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (T, error) {
	ctx, stop := f.Serving(ctx)
	defer stop()
	lost := time.Now() // when the leader was last known to work
	for {
		begun := time.Now()
		result, err := attempt(ctx, f, here, there)
		if !again(err) || authn.IsForwarded(ctx) {
			return unlessDenied(result, err), f.Status(ctx, err)
		}
		if time.Since(begun) > time.Second {
			lost = time.Now()
		}
		if wait.For(ctx, f.LookEvery()) != nil {
			return result, f.Status(ctx, err)
		}
		if time.Since(lost) > DefaultDeadline {
			return result, status.Errorf(codes.Unavailable, "no leader was found within %v: %v", DefaultDeadline, api.Reason(err))
		}
	}
}

// OnLeaderInTime is OnLeader with the default deadline, if the call has none.
func OnLeaderInTime[T any](ctx context.Context, f *Forwarder, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (T, error) {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	return OnLeader(ctx, f, here, there)
}

// Read fills in an answer by calling look: with this server's own state if stale, otherwise
// with the leader's, once a quorum has confirmed that it leads.
func Read[T any](ctx context.Context, f *Forwarder, stale bool, answer T, look func(node.State), there func(context.Context, api.ConclaveClient) (T, error)) (T, error) {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	from := func(state node.State, err error) (T, error) {
		if err == nil {
			look(state)
		}
		return answer, err
	}
	if stale {
		answer, err := from(f.cfg.Node.Stale(ctx))
		return answer, f.Status(ctx, err)
	}
	return OnLeader(ctx, f, func(ctx context.Context) (T, error) { return from(f.cfg.Node.Read(ctx)) }, there)
}

// Stream is OnLeader for a stream: send gets the messages that another server, which leads, sends.
func Stream[Q, M any](ctx context.Context, f *Forwarder, here func(context.Context) error, call func(api.ConclaveClient, context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[M], error), req Q, send func(*M) error) error {
	_, err := OnLeader(ctx, f, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, here(ctx)
	}, func(ctx context.Context, leader api.ConclaveClient) (struct{}, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := call(leader, ctx, req)
		return struct{}{}, EachOf(stream, err, send)
	})
	return err
}

// EachOf calls take for the messages of a stream that was opened, or not, until one of them fails. After
// the last message that is io.EOF.
func EachOf[M any](stream grpc.ServerStreamingClient[M], err error, take func(*M) error) error {
	for err == nil {
		var message *M
		if message, err = stream.Recv(); err == nil {
			err = take(message)
		}
	}
	return err
}

// Asking returns a function that makes a call of another server.
func Asking[Q, A any](call func(api.ConclaveClient, context.Context, Q, ...grpc.CallOption) (A, error), req Q) func(context.Context, api.ConclaveClient) (A, error) {
	return func(ctx context.Context, server api.ConclaveClient) (A, error) { return call(server, ctx, req) }
}

// unlessDenied drops a result that the caller may not have.
func unlessDenied[T any](result T, err error) T {
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		var none T
		return none
	}
	return result
}

func attempt[T any](ctx context.Context, f *Forwarder, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (result T, err error) {
	leader := f.Leader()
	if leader == f.cfg.Server || authn.IsForwarded(ctx) {
		if result, err = here(ctx); err == nil {
			err = f.cfg.Recheck(ctx)
		}
		return result, err
	}
	if leader == 0 {
		return result, fmt.Errorf("%w: server %d knows no leader", ErrMoved, f.cfg.Server)
	}
	ctx, client, err := f.Reach(ctx, leader)
	if err != nil {
		return result, err
	}
	return there(ctx, client)
}

// again reports whether an attempt failed because the asked server turned out not to lead
// or could not be reached.
func again(err error) bool {
	if errors.Is(err, node.ErrNotLeader) || errors.Is(err, ErrMoved) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.FailedPrecondition:
		return true
	}
	return false
}
