package forward

import (
	"context"
	"time"

	"github.com/conclave-io/conclave/internal/service/node"
)

const (
	// DefaultDeadline is the deadline of calls without one.
	DefaultDeadline = 5 * time.Second
	// Reserve is how long before its deadline a call stops waiting, so that it can still
	// leave the queue and report the result. If that is more than half of the remaining
	// time, it stops after half.
	Reserve = 250 * time.Millisecond
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
		over = time.AfterFunc(left-reserveOf(left)/2, func() { cancel(context.DeadlineExceeded) }).Stop
	}
	return ctx, func() {
		stop()
		over()
		cancel(nil)
	}
}

// Waiting returns a context that ends when a call should stop waiting for others, with
// time left to clean up.
func Waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, has := ctx.Deadline()
	if !has {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-reserveOf(time.Until(deadline))))
}

// reserveOf returns how much of the remaining time a call does not spend on waiting.
func reserveOf(left time.Duration) time.Duration { return min(left/2, Reserve) }
