package conclave

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inBubble runs a test on virtual time: everything is in memory, so hours of virtual time
// pass at once, and synctest.Wait waits until every goroutine is blocked.
func inBubble(t *testing.T, test func(t *testing.T)) {
	synctest.Test(t, test)
}

func mustLock(t *testing.T, c *Client, name string) *Lock {
	t.Helper()
	l, err := c.Lock(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *cluster) inspect(f func(st *state)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.state)
}

func TestLockAndUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect()
		l := mustLock(t, c, "a")
		fence, err := l.Fence()
		if err != nil || fence == 0 || l.Name() != "a" || l.Context().Err() != nil {
			t.Fatalf("fence %d, %v, name %q, context %v", fence, err, l.Name(), l.Context().Err())
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cause := context.Cause(l.Context()); cause != ErrReleased {
			t.Fatalf("after Unlock the cause is %v", cause)
		}
		if _, err := l.Fence(); !errors.Is(err, ErrNotHeld) {
			t.Fatalf("fence after Unlock: %v", err)
		}
		again := mustLock(t, c, "a")
		if f, _ := again.Fence(); f <= fence {
			t.Fatalf("fence %d after %d", f, fence)
		}
	})
}

func TestSecondUnlock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		c := cl.connect()
		l := mustLock(t, c, "a")
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.servers[0].stop() // no round trip: nobody would answer
		err := l.Unlock(t.Context())
		if !errors.Is(err, ErrNotHeld) || err.Error() != `conclave: lock "a": not held: it was released before` {
			t.Fatalf("second Unlock: %v", err)
		}
		cl.servers[0].resume()
	})
}

func TestTryLockNamesTheHolder(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		a, b := cl.connect(), cl.connect(func(cfg *Config) { cfg.Program = "other" })
		l := mustLock(t, b, "x")
		fence, _ := l.Fence()
		_, err := a.TryLock(t.Context(), "x")
		var held *HeldError
		if !errors.Is(err, ErrHeld) || !errors.As(err, &held) {
			t.Fatalf("TryLock: %v", err)
		}
		if held.Holder.Program != "other" || held.Holder.Fence != fence || held.Holder.PID == 0 {
			t.Fatalf("holder %+v", held.Holder)
		}
		for _, part := range []string{`"x"`, "other", fmt.Sprint(held.Holder.PID), "2001-09-09"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
		if free, err := a.TryLock(t.Context(), "y"); err != nil || free.Name() != "y" {
			t.Fatalf("a free lock: %v", err)
		}
	})
}

func TestGoroutinesExcludeEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		clients := []*Client{cl.connect(), cl.connect()}
		inside, last := 0, uint64(0)
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				l := mustLock(t, clients[i%2], "x")
				fence, err := l.Fence()
				mu.Lock()
				inside++
				if inside != 1 || err != nil || fence <= last {
					t.Errorf("%d inside, fence %d after %d, %v", inside, fence, last, err)
				}
				last = fence
				mu.Unlock()
				time.Sleep(time.Millisecond) // the critical section, on virtual time
				mu.Lock()
				inside--
				mu.Unlock()
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		cl.inspect(func(st *state) {
			if len(st.resources) != 0 || st.opened != 2 {
				t.Errorf("%d locks left, %d sessions opened", len(st.resources), st.opened)
			}
		})
	})
}

func TestCancelWhileQueued(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		a, b := cl.connect(), cl.connect()
		l := mustLock(t, a, "x")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := b.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %v", err)
		}
		synctest.Wait()
		cl.inspect(func(st *state) {
			if n := len(st.resources[api.Class_CLASS_LOCK.String()+"x"].queue); n != 1 {
				t.Errorf("%d claims after the cancel", n)
			}
		})
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.inspect(func(st *state) {
			if len(st.resources) != 0 {
				t.Error("a hold was leaked")
			}
		})
	})
}

// A client works with servers of a newer version of the interface. With servers of an
// older version, it returns an error that names the version.
func TestVersionsOfServers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		cl.version = line.ProtocolVersion + 1
		if err := mustLock(t, cl.connect(), "x").Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		cl.version = line.ProtocolVersion - 1
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := Dial(ctx, cl.config())
		if err == nil || !strings.Contains(err.Error(), "speaks version 0 of the interface; this client needs version 1") {
			t.Errorf("from older servers: %v", err)
		}
	})
}

// A client that lives for months reconnects many times, and keeps nothing of it.
func TestStreamsThatEndedAreForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		c := newClient(cl.config().WithDefaults())
		d := newDriver(c)
		c.tasks.Go(d.run)
		for range 5 {
			mustLock(t, c, "x").Unlock(t.Context())
			cl.servers[0].kill()
			time.Sleep(time.Second)
			cl.servers[0].start()
		}
		mustLock(t, c, "x")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := len(d.streams); n > 1 {
			t.Errorf("%d streams are kept", n)
		}
	})
}
