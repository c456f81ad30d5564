package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

func TestGrantRacingCancelIsGivenBack(t *testing.T) {
	const soon, late, never = 100 * time.Millisecond, 200 * time.Millisecond, -1
	t.Run("cancel answered first", func(t *testing.T) { grantRacingCancel(t, late, soon) })
	t.Run("grant answered first", func(t *testing.T) { grantRacingCancel(t, soon, late) })
	t.Run("grant lost", func(t *testing.T) { grantRacingCancel(t, never, soon) })
}

func grantRacingCancel(t *testing.T, grantLag, cancelLag time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		a, b := cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, a, "x")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := clienttest.InBackground(ctx, b, "x")
		synctest.Wait()
		// The grant is on its way, for long, when the caller goes away.
		cl.Delay(func(rep *api.Reply) time.Duration {
			switch {
			case rep.Fence > 1 && rep.Sequence == 2: // the grant
				return grantLag
			case rep.Fence > 1 && rep.Sequence == 3: // the Cancel, which comes too late
				return cancelLag
			default:
				return 0
			}
		})
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		if o := <-waiting; !errors.Is(o.Err, context.Canceled) {
			t.Fatalf("Lock: %v", o.Err)
		}
		time.Sleep(time.Second)
		if q := cl.Queue("x"); len(q) != 0 {
			t.Fatalf("%d claims left of a call that was cancelled", len(q))
		}
	})
}

func TestReconnectKeepsThePlaceInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		a, b, c := cl.Connect(), cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, a, "x")
		second := clienttest.InBackground(t.Context(), b, "x")
		synctest.Wait()
		third := clienttest.InBackground(t.Context(), c, "x")
		synctest.Wait()
		before := cl.Queue("x")

		cl.Servers[0].Kill()
		cl.Lead(-1)
		time.Sleep(300 * time.Millisecond)
		cl.Lead(1)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := <-second
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if after := cl.Queue("x"); !slices.Equal(after, before[1:]) {
			t.Fatalf("queue %x after the change of leader, %x before", after, before)
		}
		if err := o.Lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o = <-third; o.Err != nil {
			t.Fatal(o.Err)
		}
	})
}

func TestLeaderThatIsNotConfiguredIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		cl.Lead(2)
		c := cl.Connect(func(cfg *conclave.Config) { cfg.Servers = cfg.Servers[:1] })
		clienttest.Lock(t, c, "x")
		if c.Server() != cl.Servers[2].Address {
			t.Fatalf("attached to %q", c.Server())
		}
	})
}

func TestStoppedLeaderIsNoticed(t *testing.T) {
	for _, idle := range []bool{true, false} {
		t.Run(fmt.Sprintf("idle=%v", idle), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stoppedLeader(t, idle) })
		})
	}
}

// stoppedLeader measures how long it takes from the stop of the leader to the
// next grant: to a caller that comes then (idle), or to one that waits.
func stoppedLeader(t *testing.T, idle bool) {
	cl := clienttest.New(t, 3)
	ten := func(cfg *conclave.Config) { cfg.TTL = 10 * time.Second }
	a, b := cl.Connect(ten), cl.Connect(ten)
	clienttest.Lock(t, a, "x")
	name := "x"
	if idle {
		name = "y"
		clienttest.Lock(t, b, "z") // so that b has a session
	}
	waiting := clienttest.InBackground(t.Context(), b, name)
	if !idle {
		time.Sleep(7 * time.Second) // right after a renewal nothing is due for long
	}
	cl.Servers[0].Stop()
	cl.Lead(1)
	if idle {
		waiting = clienttest.InBackground(t.Context(), b, "y2")
	}
	stopped := time.Now()
	if !idle {
		time.AfterFunc(300*time.Millisecond, func() {
			cl.Release("x")
		})
	}
	o := <-waiting
	if took := time.Since(stopped); o.Err != nil || took > 900*time.Millisecond {
		t.Fatalf("granted after %v, %v", took, o.Err)
	}
	cl.Servers[0].Resume()
}

func TestLostReplyIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		clienttest.Lock(t, c, "warm")
		lost := 0
		cl.Delay(func(rep *api.Reply) time.Duration {
			if rep.Fence == 2 && lost == 0 {
				lost++
				return -1
			}
			return 0
		})
		l := clienttest.Lock(t, c, "x")
		if f, err := l.Fence(); f != 2 || err != nil || lost != 1 {
			t.Fatalf("fence %d, %v, %d replies lost", f, err, lost)
		}
	})
}

func TestSlowDiskKeepsTheServerInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		clienttest.Lock(t, c, "warm")
		cl.Delay(func(*api.Reply) time.Duration { return 800 * time.Millisecond })
		l := clienttest.Lock(t, c, "x")
		time.Sleep(10 * time.Second)
		if l.Context().Err() != nil || c.Server() != cl.Servers[0].Address {
			t.Fatalf("context %v, server %q", l.Context().Err(), c.Server())
		}
	})
}

func TestLostSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c, other := cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, c, "x")
		blocker := clienttest.Lock(t, other, "y")
		waiting := clienttest.InBackground(t.Context(), c, "y")
		synctest.Wait()
		old, secret := c.SessionID(), cl.Secret(l)

		cl.Lead(-1) // nobody renews, nobody expires
		began := time.Now()
		<-l.Context().Done()
		if d := time.Since(began); context.Cause(l.Context()) != conclave.ErrLost || d > 2*time.Second {
			t.Fatalf("context ended after %v: %v", d, context.Cause(l.Context()))
		}
		if _, err := l.Fence(); !errors.Is(err, conclave.ErrLost) {
			t.Fatalf("Fence: %v", err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, conclave.ErrNotHeld) || !errors.Is(err, conclave.ErrLost) {
			t.Fatalf("Unlock: %v", err)
		}
		cl.Lead(1)
		clienttest.Lock(t, c, "x")
		if c.SessionID() == old || l.Context().Err() == nil {
			t.Fatal("the old session came back")
		}
		cl.Inspect(func(st *clienttest.State) {
			if st.Sessions[secret] != nil {
				t.Error("the old session was not closed")
			}
		})
		_ = blocker.Unlock(t.Context())
		if o := <-waiting; o.Err != nil || cl.Secret(o.Lock) == secret {
			t.Fatalf("the waiting call: %v", o.Err)
		}
	})
}

func TestSessionGoneAtTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "x")
		cl.End(cl.Secret(l), false)
		<-l.Context().Done() // the next renewal tells
		if context.Cause(l.Context()) != conclave.ErrLost {
			t.Fatal(context.Cause(l.Context()))
		}
		clienttest.Lock(t, c, "x")
	})
}

func TestUnlockGoesOnInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect(func(cfg *conclave.Config) { cfg.TTL = time.Minute })
		l := clienttest.Lock(t, c, "x")
		cl.Lead(-1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := l.Unlock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Unlock: %v", err)
		}
		if context.Cause(l.Context()) != conclave.ErrReleased {
			t.Fatal("the context lives on")
		}
		cl.Lead(2)
		time.Sleep(time.Second)
		if q := cl.Queue("x"); len(q) != 0 {
			t.Fatal("the release was not sent")
		}
	})
}

func TestManyCallsStayInTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect()
		clienttest.Lock(t, c, "warm")
		cl.Delay(func(rep *api.Reply) time.Duration { return time.Duration(rep.Sequence%7) * 3 * time.Millisecond })
		var group sync.WaitGroup
		for i := range 5000 {
			group.Go(func() {
				l := clienttest.Lock(t, c, fmt.Sprint("lock", i))
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		cl.Inspect(func(st *clienttest.State) {
			if st.Most >= 1024 || st.Most < 100 {
				t.Errorf("a server had to keep %d answers", st.Most)
			}
		})
	})
}
