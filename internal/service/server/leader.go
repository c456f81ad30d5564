package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/kit/wait"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/node"
)

const (
	// leaderTrailer has the leader's client address, if known, when a server refuses a
	// call because it does not lead.
	leaderTrailer = "conclave-leader"
	// defaultDeadline is the deadline of calls without one.
	defaultDeadline = 5 * time.Second
)

// errMoved is the error of an attempt that is worth repeating once the leader is found.
var errMoved = errors.New("the leader changed")

// onLeader has the leader do something: it calls here if this server leads, otherwise
// there, with a connection to the leader. It retries until shortly before the deadline;
// without a deadline, until no leader was found for the default deadline. A call that was
// passed on to this server is not passed on again.
func onLeader[T any](ctx context.Context, s *Server, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (T, error) {
	ctx, stop := s.live(ctx)
	defer stop()
	end, stop := waitingEnd(ctx)
	defer stop()
	lost := time.Now() // when the leader was last known to work
	for {
		begun := time.Now()
		result, err := attempt(ctx, s, here, there)
		if !again(err) || authn.IsForwarded(ctx) {
			return unlessDenied(result, err), s.spoken(ctx, err)
		}
		if time.Since(begun) > time.Second {
			lost = time.Now()
		}
		if wait.For(end, s.pollInterval()) != nil {
			return result, s.spoken(ctx, err)
		}
		if time.Since(lost) > defaultDeadline {
			return result, unavailable("no leader was found within %v: %v", defaultDeadline, api.Reason(err))
		}
	}
}

// onLeaderInTime is onLeader with the default deadline, if the call has none.
func onLeaderInTime[T any](ctx context.Context, s *Server, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (T, error) {
	ctx, cancel := deadlineFor(ctx, false)
	defer cancel()
	return onLeader(ctx, s, here, there)
}

// asking returns a function that makes a call of another server.
func asking[Q, A any](call func(api.ConclaveClient, context.Context, Q, ...grpc.CallOption) (A, error), req Q) func(context.Context, api.ConclaveClient) (A, error) {
	return func(ctx context.Context, server api.ConclaveClient) (A, error) { return call(server, ctx, req) }
}

// streamed is onLeader for a stream: send gets the messages that another server, which leads, sends.
func streamed[Q, M any](ctx context.Context, s *Server, here func(context.Context) error, call func(api.ConclaveClient, context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[M], error), req Q, send func(*M) error) error {
	_, err := onLeader(ctx, s, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, here(ctx)
	}, func(ctx context.Context, leader api.ConclaveClient) (struct{}, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := call(leader, ctx, req)
		return struct{}{}, eachOf(stream, err, send)
	})
	return err
}

// eachOf calls take for the messages of a stream that was opened, or not, until one of them fails. After
// the last message that is io.EOF.
func eachOf[M any](stream grpc.ServerStreamingClient[M], err error, take func(*M) error) error {
	for err == nil {
		var message *M
		if message, err = stream.Recv(); err == nil {
			err = take(message)
		}
	}
	return err
}

// unlessDenied drops a result that the caller may not have.
func unlessDenied[T any](result T, err error) T {
	if code := status.Code(err); code == codes.PermissionDenied || code == codes.Unauthenticated {
		var none T
		return none
	}
	return result
}

func attempt[T any](ctx context.Context, s *Server, here func(context.Context) (T, error), there func(context.Context, api.ConclaveClient) (T, error)) (result T, err error) {
	leader := s.node.Metrics().Leader.Load()
	if leader == s.cfg.ID || authn.IsForwarded(ctx) {
		if result, err = here(ctx); err == nil {
			err = s.gate.Recheck(ctx)
		}
		return result, err
	}
	if leader == 0 {
		return result, fmt.Errorf("%w: server %d knows no leader", errMoved, s.cfg.ID)
	}
	ctx, client, err := s.reach(ctx, leader)
	if err != nil {
		return result, err
	}
	return there(ctx, client)
}

// live returns a context that ends with ctx, when the server stops, and shortly before the
// deadline of ctx, so that the caller can still be told. The deadline itself stays the same,
// because another server sees it.
func (s *Server) live(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(node.ErrStopped) })
	over := func() bool { return true }
	if deadline, has := ctx.Deadline(); has {
		left := time.Until(deadline)
		over = time.AfterFunc(left-reserveOf(left)/2, func() { cancel(context.DeadlineExceeded) }).Stop
	}
	return ctx, func() {
		stop()
		over()
		cancel(nil)
	}
}

// waitingEnd returns a context that ends when a call should stop waiting for others, with
// time left to clean up.
func waitingEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, has := ctx.Deadline()
	if !has {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-reserveOf(time.Until(deadline))))
}

// reserveOf returns how much of the remaining time a call does not spend on waiting.
func reserveOf(left time.Duration) time.Duration { return min(left/2, reserve) }

// again reports whether an attempt failed because the asked server turned out not to lead
// or could not be reached.
func again(err error) bool {
	if errors.Is(err, node.ErrNotLeader) || errors.Is(err, errMoved) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.FailedPrecondition:
		return true
	}
	return false
}

// spoken turns an error into a status for the caller.
func (s *Server) spoken(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, node.ErrStopped), errors.Is(context.Cause(ctx), node.ErrStopped):
		return unavailable("server %d is stopping", s.cfg.ID)
	case errors.Is(err, node.ErrNotLeader):
		leader := s.node.Metrics().Leader.Load()
		// This fails outside of gRPC, where nobody reads the trailer.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(leaderTrailer, s.node.ClientAddress(leader)))
		return status.Error(codes.FailedPrecondition, s.disclaim(leader))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(context.Cause(ctx), context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return unavailable("no quorum answered in time")
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, "the caller cancelled the call")
	case errors.Is(err, errMoved):
		return unavailable("%v", err)
	}
	return err
}

// pool has a connection for each server name.
type pool struct {
	options []grpc.DialOption

	mu    sync.Mutex
	conns map[string]*grpc.ClientConn
}

func newPool(options ...grpc.DialOption) *pool {
	return &pool{conns: make(map[string]*grpc.ClientConn), options: options}
}

func (p *pool) get(name string) (api.ConclaveClient, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	conn := p.conns[name]
	if conn == nil {
		var err error
		if conn, err = api.Dial(name, time.Second, p.options...); err != nil {
			return nil, err
		}
		p.conns[name] = conn
	}
	return api.NewConclaveClient(conn), nil
}

// has reports whether there is a connection.
func (p *pool) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[name] != nil
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, conn := range p.conns {
		conn.Close()
		delete(p.conns, name)
	}
}
