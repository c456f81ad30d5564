package forward

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/service/node"
)

// A call stops waiting with time left to clean up, and is told before its deadline that it is over.
func TestACallEndsBeforeItsDeadline(t *testing.T) {
	for _, test := range []struct{ deadline, waiting, serving time.Duration }{
		{10 * time.Second, 10*time.Second - leastReserve, 10*time.Second - leastReserve/2},
		{100 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &Forwarder{ctx: t.Context()}
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			begun := time.Now()
			waiting, stop := f.Waiting(ctx)
			defer stop()
			serving, stop := f.Serving(ctx)
			defer stop()
			if deadline, _ := serving.Deadline(); deadline != begun.Add(test.deadline) {
				t.Errorf("another server is told the deadline %v, want %v", deadline.Sub(begun), test.deadline)
			}
			<-waiting.Done()
			if took := time.Since(begun); took != test.waiting {
				t.Errorf("with %v it waits %v, want %v", test.deadline, took, test.waiting)
			}
			<-serving.Done()
			if took := time.Since(begun); took != test.serving || !errors.Is(context.Cause(serving), context.DeadlineExceeded) {
				t.Errorf("with %v it is served for %v, want %v: %v", test.deadline, took, test.serving, context.Cause(serving))
			}
		})
	}
}

// The reserve follows the time that answers take, and the network that the server is set for.
func TestTheReserveScales(t *testing.T) {
	f := new(Forwarder)
	check := func(least, most time.Duration) {
		t.Helper()
		if got := f.Reserve(); got < least || got > most {
			t.Errorf("the reserve is %v, want %v to %v", got, least, most)
		}
	}
	check(leastReserve, leastReserve)
	f.cfg.Heartbeat = 500 * time.Millisecond
	check(2500*time.Millisecond, 2500*time.Millisecond)
	f.cfg.Heartbeat = 50 * time.Millisecond
	for range 100 {
		f.Answered(3 * time.Millisecond)
	}
	check(leastReserve, leastReserve)
	f.Answered(400 * time.Millisecond) // one is enough
	check(800*time.Millisecond, DefaultDeadline)
	for range 100 {
		f.Answered(400 * time.Millisecond)
	}
	check(800*time.Millisecond, 900*time.Millisecond)
	for range 100 {
		f.Answered(3 * time.Millisecond)
	}
	check(leastReserve, leastReserve)
	f.Answered(time.Hour)
	check(DefaultDeadline, DefaultDeadline)
}

func TestNoCallOutlivesItsServer(t *testing.T) {
	server, stop := context.WithCancel(t.Context())
	ctx, done := (&Forwarder{ctx: server}).Serving(t.Context())
	defer done()
	stop()
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, node.ErrStopped) {
		t.Errorf("it ends with %v", err)
	}
}
