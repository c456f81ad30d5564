package forward

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/internal/service/node"
)

const (
	// DefaultDeadline is the deadline of calls without one.
	DefaultDeadline = 5 * time.Second
	// leastReserve is the shortest reserve of a call.
	leastReserve = 250 * time.Millisecond
	// reserveHeartbeats is the shortest reserve in heartbeats, which are set for the network.
	reserveHeartbeats = 5
)

// WithDeadline gives a call the default deadline if it has none.
func WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, DefaultDeadline)
}

// Serving returns a context that ends with ctx, when the server stops, and shortly before the
// deadline of ctx, so that the caller can still be told. The deadline itself stays the same,
// because another server sees it.
func (f *Forwarder) Serving(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.ctx, func() { cancel(node.ErrStopped) })
	over := func() bool { return true }
	if deadline, has := ctx.Deadline(); has {
		left := time.Until(deadline)
		over = time.AfterFunc(left-f.reserveOf(left)/2, func() { cancel(context.DeadlineExceeded) }).Stop
	}
	return ctx, func() {
		stop()
		over()
		cancel(nil)
	}
}

// Waiting returns a context that ends when a call should stop waiting for others, with
// time left to clean up.
func (f *Forwarder) Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	until := f.WaitsUntil(ctx)
	if until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, until)
}

// WaitsUntil returns when a call should stop waiting for others, or zero if it has no deadline.
func (f *Forwarder) WaitsUntil(ctx context.Context) time.Time {
	deadline, has := ctx.Deadline()
	if !has {
		return time.Time{}
	}
	return deadline.Add(-f.reserveOf(time.Until(deadline)))
}

// Answered notes how long a request took until its first answer.
func (f *Forwarder) Answered(took time.Duration) { f.pace.add(took) }

// Reserve returns how long before its deadline a call should stop waiting for others, so that it can
// still leave the queue and report the result: twice as long as requests took until now, at least
// 250 ms and 5 heartbeats, and at most the default deadline.
func (f *Forwarder) Reserve() time.Duration {
	return min(max(2*f.pace.bound(), reserveHeartbeats*f.cfg.Heartbeat, leastReserve), DefaultDeadline)
}

// reserveOf returns how much of the remaining time a call does not spend on waiting: the reserve, but
// at most half of the time.
func (f *Forwarder) reserveOf(left time.Duration) time.Duration { return min(left/2, f.Reserve()) }
