package conclave_test

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

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/client/line"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLockAndUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "a")
		fence, err := l.Fence()
		if err != nil || fence == 0 || l.Name() != "a" || l.Context().Err() != nil {
			t.Fatalf("fence %d, %v, name %q, context %v", fence, err, l.Name(), l.Context().Err())
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if cause := context.Cause(l.Context()); cause != conclave.ErrReleased {
			t.Fatalf("after Unlock the cause is %v", cause)
		}
		if _, err := l.Fence(); !errors.Is(err, conclave.ErrNotHeld) {
			t.Fatalf("fence after Unlock: %v", err)
		}
		again := clienttest.Lock(t, c, "a")
		if f, _ := again.Fence(); f <= fence {
			t.Fatalf("fence %d after %d", f, fence)
		}
	})
}

func TestSecondUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "a")
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.Servers[0].Stop() // no round trip: nobody would answer
		err := l.Unlock(t.Context())
		if !errors.Is(err, conclave.ErrNotHeld) || err.Error() != `conclave: lock "a": not held: it was released before` {
			t.Fatalf("second Unlock: %v", err)
		}
		cl.Servers[0].Resume()
	})
}

func TestTryLockNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		a, b := cl.Connect(), cl.Connect(func(cfg *conclave.Config) { cfg.Program = "other" })
		l := clienttest.Lock(t, b, "x")
		fence, _ := l.Fence()
		_, err := a.TryLock(t.Context(), "x")
		var held *conclave.HeldError
		if !errors.Is(err, conclave.ErrHeld) || !errors.As(err, &held) {
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
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		clients := []*conclave.Client{cl.Connect(), cl.Connect()}
		inside, last := 0, uint64(0)
		var mu sync.Mutex
		var group sync.WaitGroup
		for i := range 200 {
			group.Go(func() {
				l := clienttest.Lock(t, clients[i%2], "x")
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
		cl.Inspect(func(st *clienttest.State) {
			if len(st.Resources) != 0 || st.Opened != 2 {
				t.Errorf("%d locks left, %d sessions opened", len(st.Resources), st.Opened)
			}
		})
	})
}

func TestCancelWhileQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		a, b := cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, a, "x")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := b.Lock(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %v", err)
		}
		synctest.Wait()
		cl.Inspect(func(st *clienttest.State) {
			if n := len(st.Resources[api.Class_CLASS_LOCK.String()+"x"].Queue); n != 1 {
				t.Errorf("%d claims after the cancel", n)
			}
		})
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cl.Inspect(func(st *clienttest.State) {
			if len(st.Resources) != 0 {
				t.Error("a hold was leaked")
			}
		})
	})
}

// A client works with servers of a newer version of the interface. With servers of an
// older version, it returns an error that names the version.
func TestVersionsOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		cl.Version = line.ProtocolVersion + 1
		if err := clienttest.Lock(t, cl.Connect(), "x").Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		cl.Version = line.ProtocolVersion - 1
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := conclave.Dial(ctx, cl.Config())
		if err == nil || !strings.Contains(err.Error(), "speaks version 0 of the interface; this client needs version 1") {
			t.Errorf("from older servers: %v", err)
		}
	})
}
