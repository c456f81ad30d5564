package attach

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

func untimed(registry.Op, registry.Code, time.Duration) {}

func TestOutboxOverflowsOnce(t *testing.T) {
	overflows := 0
	o := newOutbox(stream.Caller{}, func() { overflows++ })
	o.Deliver(make([]node.Reply, stream.DefaultLimits.Most))
	if overflows != 0 {
		t.Fatal("it overflows when it is full")
	}
	o.Deliver(make([]node.Reply, 1))
	o.Deliver(make([]node.Reply, stream.DefaultLimits.Most))
	if frame, _ := o.take(untimed); overflows != 1 || frame != nil {
		t.Errorf("%d overflows, %d replies kept", overflows, len(frame.GetReplies()))
	}
}

func TestOutboxAdmitsWhenThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(stream.Caller{}, nil)
		o.Deliver(make([]node.Reply, stream.DefaultLimits.HighWater+1))
		admitted := make(chan error)
		go func() { admitted <- o.admit(t.Context()) }()
		synctest.Wait()
		select {
		case <-admitted:
			t.Fatal("it admits though it is full")
		default:
		}
		o.take(untimed)
		if err := <-admitted; err != nil {
			t.Fatal(err)
		}
	})
}

func TestOutboxAdmitsNothingAfterTheEnd(t *testing.T) {
	o := newOutbox(stream.Caller{}, nil)
	o.Deliver(make([]node.Reply, stream.DefaultLimits.HighWater+1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.admit(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
