package server

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/authn"
	"github.com/conclave-io/conclave/internal/service/forward"
)

// Metadata of requests that are passed on to another server.
const (
	// waitHeader is for how long the request may still wait in a queue, in ns. A server that does not
	// know it lets the request wait until shortly before its deadline.
	waitHeader = "conclave-wait"
	// queuedHeader tells the server that has passed a request on that the request waits in a queue. It
	// is sent at once, so that it arrives even if the reply does not.
	queuedHeader = "conclave-queued"
)

// queueing is how a request to acquire waits in a queue.
type queueing struct {
	// until is when the request leaves the queue; zero if it may wait as long as its caller does.
	until time.Time
	// own means that this server has numbered the request: nobody else can withdraw it.
	own bool
	// queued means that a quorum has answered that the request waits.
	queued atomic.Bool
}

type queueingKey struct{}

// queueingOf returns how the request of a call waits.
func queueingOf(ctx context.Context) *queueing {
	if q, is := ctx.Value(queueingKey{}).(*queueing); is {
		return q
	}
	return new(queueing)
}

// forAtMost returns the context of a request that waits for at most a given time. It lasts longer, so
// that the request can still get its first answer, or leave the queue.
func (s *Server) forAtMost(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	q := &queueing{until: time.Now().Add(wait)}
	return context.WithDeadline(context.WithValue(ctx, queueingKey{}, q), q.until.Add(s.forward.Reserve()))
}

// queueing returns the context of a request that may wait. If the caller has not said for how
// long, the request waits until shortly before the deadline of the call.
func (s *Server) queueing(ctx context.Context, req *api.Request) context.Context {
	q, is := ctx.Value(queueingKey{}).(*queueing)
	if !is {
		q = &queueing{until: waitsUntil(ctx, s.forward)}
	}
	q.own = req.GetSequence() == 0 && !authn.IsForwarded(ctx)
	return context.WithValue(ctx, queueingKey{}, q)
}

// waitsUntil returns when the request of a call over gRPC should leave its queue, or zero.
func waitsUntil(ctx context.Context, f *forward.Forwarder) time.Time {
	if authn.IsForwarded(ctx) {
		for _, text := range metadata.ValueFromIncomingContext(ctx, waitHeader) {
			if left, err := strconv.ParseInt(text, 10, 64); err == nil {
				return time.Now().Add(time.Duration(left))
			}
		}
	}
	return f.WaitsUntil(ctx)
}

// queueEnds returns a channel that has a value when the wait of a request is over, and one that is
// closed when the server stops and nobody else can withdraw the request.
func (s *Server) queueEnds(q *queueing) (over <-chan time.Time, leaving <-chan struct{}, stop func()) {
	stop = func() {}
	if q.own {
		leaving, stop = s.leaving, s.waiting.enter()
	}
	if q.until.IsZero() {
		return nil, leaving, stop
	}
	timer := time.NewTimer(time.Until(q.until))
	leave := stop
	return timer.C, leaving, func() {
		timer.Stop()
		leave()
	}
}

// over reports whether the request was queued, and its wait is over.
func (q *queueing) over() bool {
	return q.queued.Load() && !q.until.IsZero() && !time.Now().Before(q.until)
}

// noteQueued notes that the request waits, and tells the server that has passed it on.
func (q *queueing) noteQueued(ctx context.Context) {
	q.queued.Store(true)
	if authn.IsForwarded(ctx) {
		_ = grpc.SendHeader(ctx, metadata.Pairs(queuedHeader, "1")) // fails if that server is gone
	}
}

// passOn has a request carried out by another server.
func (s *Server) passOn(ctx context.Context, server api.ConclaveClient, req *api.Request) (*api.Reply, error) {
	q := queueingOf(ctx)
	if !q.until.IsZero() {
		ctx = metadata.AppendToOutgoingContext(ctx, waitHeader, strconv.FormatInt(int64(time.Until(q.until)), 10))
	}
	var header metadata.MD
	begun := time.Now()
	reply, err := server.Do(ctx, req, grpc.Header(&header))
	switch {
	case len(header.Get(queuedHeader)) > 0:
		q.queued.Store(true)
	case err == nil:
		s.answered(req, begun)
	}
	return reply, err
}

// answered notes how long a request took until its first answer. Renewals are not written to the log,
// so they tell nothing of the others.
func (s *Server) answered(req *api.Request, begun time.Time) {
	if req.GetRenew() == nil {
		s.forward.Answered(time.Since(begun))
	}
}

// crowd counts what is under way.
type crowd struct {
	mu    sync.Mutex
	size  int
	empty chan struct{} // closed when the size falls to 0; nil if nobody waits for that
}

// enter counts one more, until the result is called.
func (c *crowd) enter() (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size++
	return c.leave
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.size--; c.size == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// gone returns a channel that is closed when nothing is under way.
func (c *crowd) gone() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	gone := c.empty
	if c.size == 0 {
		close(c.empty)
		c.empty = nil
	}
	return gone
}
