package conclave

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/api"
)

// inBackground starts a Lock and returns where its outcome comes.
func inBackground(ctx context.Context, c *Client, name string) <-chan locked {
	out := make(chan locked, 1)
	go func() {
		l, err := c.Lock(ctx, name)
		out <- locked{l, err}
	}()
	return out
}

type locked struct {
	lock *Lock
	err  error
}

// queue returns the sessions that hold or wait for a lock, in order.
func (c *cluster) queue(name string) (ids []string) {
	c.inspect(func(st *state) {
		if res := st.resources[api.Class_CLASS_LOCK.String()+name]; res != nil {
			for _, cl := range res.queue {
				ids = append(ids, cl.session)
			}
		}
	})
	return ids
}

func TestGrantRacingCancelIsGivenBack(t *testing.T) {
	const soon, late, never = 100 * time.Millisecond, 200 * time.Millisecond, -1
	t.Run("cancel answered first", func(t *testing.T) { grantRacingCancel(t, late, soon) })
	t.Run("grant answered first", func(t *testing.T) { grantRacingCancel(t, soon, late) })
	t.Run("grant lost", func(t *testing.T) { grantRacingCancel(t, never, soon) })
}

func grantRacingCancel(t *testing.T, grantLag, cancelLag time.Duration) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		a, b := cl.connect(), cl.connect()
		l := mustLock(t, a, "x")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := inBackground(ctx, b, "x")
		synctest.Wait()
		// The grant is on its way, for long, when the caller goes away.
		cl.mu.Lock()
		cl.lag = func(rep *api.Reply) time.Duration {
			switch {
			case rep.Fence > 1 && rep.Sequence == 2: // the grant
				return grantLag
			case rep.Fence > 1 && rep.Sequence == 3: // the Cancel, which comes too late
				return cancelLag
			default:
				return 0
			}
		}
		cl.mu.Unlock()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel()
		if o := <-waiting; !errors.Is(o.err, context.Canceled) {
			t.Fatalf("Lock: %v", o.err)
		}
		time.Sleep(time.Second)
		if q := cl.queue("x"); len(q) != 0 {
			t.Fatalf("%d claims left of a call that was cancelled", len(q))
		}
	})
}

func TestReconnectKeepsThePlaceInTheQueue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		a, b, c := cl.connect(), cl.connect(), cl.connect()
		l := mustLock(t, a, "x")
		second := inBackground(t.Context(), b, "x")
		synctest.Wait()
		third := inBackground(t.Context(), c, "x")
		synctest.Wait()
		before := cl.queue("x")

		cl.servers[0].kill()
		cl.lead(-1)
		time.Sleep(300 * time.Millisecond)
		cl.lead(1)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := <-second
		if o.err != nil {
			t.Fatal(o.err)
		}
		if after := cl.queue("x"); !slices.Equal(after, before[1:]) {
			t.Fatalf("queue %x after the change of leader, %x before", after, before)
		}
		if err := o.lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if o = <-third; o.err != nil {
			t.Fatal(o.err)
		}
	})
}

func TestLeaderThatIsNotConfiguredIsFollowed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		cl.lead(2)
		c := cl.connect(func(cfg *Config) { cfg.Servers = cfg.Servers[:1] })
		mustLock(t, c, "x")
		if c.Server() != cl.servers[2].address {
			t.Fatalf("attached to %q", c.Server())
		}
	})
}

func TestStoppedLeaderIsNoticed(t *testing.T) {
	for _, idle := range []bool{true, false} {
		t.Run(fmt.Sprintf("idle=%v", idle), func(t *testing.T) {
			inBubble(t, func(t *testing.T) { stoppedLeader(t, idle) })
		})
	}
}

// stoppedLeader measures how long it takes from the stop of the leader to the
// next grant: to a caller that comes then (idle), or to one that waits.
func stoppedLeader(t *testing.T, idle bool) {
	cl := newCluster(t, 3)
	ten := func(cfg *Config) { cfg.TTL = 10 * time.Second }
	a, b := cl.connect(ten), cl.connect(ten)
	l := mustLock(t, a, "x")
	name := "x"
	if idle {
		name = "y"
		l = mustLock(t, b, "z") // so that b has a session
	}
	waiting := inBackground(t.Context(), b, name)
	if !idle {
		time.Sleep(7 * time.Second) // right after a renewal nothing is due for long
	}
	cl.servers[0].stop()
	cl.lead(1)
	if idle {
		waiting = inBackground(t.Context(), b, "y2")
	}
	stopped := time.Now()
	if !idle {
		time.AfterFunc(300*time.Millisecond, func() {
			cl.mu.Lock()
			defer cl.mu.Unlock()
			s := cl.state.sessions[string(l.h.call.Session().Secret())]
			cl.deliver(cl.state.remove(s.claims[l.h.call.Sequence()]))
		})
	}
	o := <-waiting
	if took := time.Since(stopped); o.err != nil || took > 900*time.Millisecond {
		t.Fatalf("granted after %v, %v", took, o.err)
	}
	cl.servers[0].resume()
}

func TestLostReplyIsAskedForAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect()
		mustLock(t, c, "warm")
		lost := 0
		cl.mu.Lock()
		cl.lag = func(rep *api.Reply) time.Duration {
			if rep.Fence == 2 && lost == 0 {
				lost++
				return -1
			}
			return 0
		}
		cl.mu.Unlock()
		l := mustLock(t, c, "x")
		if f, err := l.Fence(); f != 2 || err != nil || lost != 1 {
			t.Fatalf("fence %d, %v, %d replies lost", f, err, lost)
		}
	})
}

func TestSlowDiskKeepsTheServerInUse(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect()
		mustLock(t, c, "warm")
		cl.mu.Lock()
		cl.lag = func(*api.Reply) time.Duration { return 800 * time.Millisecond }
		cl.mu.Unlock()
		l := mustLock(t, c, "x")
		time.Sleep(10 * time.Second)
		if l.Context().Err() != nil || c.Server() != cl.servers[0].address {
			t.Fatalf("context %v, server %q", l.Context().Err(), c.Server())
		}
	})
}

func TestLostSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c, other := cl.connect(), cl.connect()
		l := mustLock(t, c, "x")
		blocker := mustLock(t, other, "y")
		waiting := inBackground(t.Context(), c, "y")
		synctest.Wait()
		old := l.h.call.Session()

		cl.lead(-1) // nobody renews, nobody expires
		began := time.Now()
		<-l.Context().Done()
		if d := time.Since(began); context.Cause(l.Context()) != ErrLost || d > 2*time.Second {
			t.Fatalf("context ended after %v: %v", d, context.Cause(l.Context()))
		}
		if _, err := l.Fence(); !errors.Is(err, ErrLost) {
			t.Fatalf("Fence: %v", err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrNotHeld) || !errors.Is(err, ErrLost) {
			t.Fatalf("Unlock: %v", err)
		}
		cl.lead(1)
		again := mustLock(t, c, "x")
		if again.h.call.Session() == old || l.Context().Err() == nil {
			t.Fatal("the old session came back")
		}
		cl.inspect(func(st *state) {
			if st.sessions[string(old.Secret())] != nil {
				t.Error("the old session was not closed")
			}
		})
		_ = blocker.Unlock(t.Context())
		if o := <-waiting; o.err != nil || o.lock.h.call.Session() == old {
			t.Fatalf("the waiting call: %v", o.err)
		}
	})
}

func TestSessionGoneAtTheServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		c := cl.connect()
		l := mustLock(t, c, "x")
		cl.mu.Lock()
		cl.state.end(string(l.h.call.Session().Secret()))
		cl.mu.Unlock()
		<-l.Context().Done() // the next renewal tells
		if context.Cause(l.Context()) != ErrLost {
			t.Fatal(context.Cause(l.Context()))
		}
		mustLock(t, c, "x")
	})
}

func TestUnlockGoesOnInTheBackground(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect(func(cfg *Config) { cfg.TTL = time.Minute })
		l := mustLock(t, c, "x")
		cl.lead(-1)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := l.Unlock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Unlock: %v", err)
		}
		if context.Cause(l.Context()) != ErrReleased {
			t.Fatal("the context lives on")
		}
		cl.lead(2)
		time.Sleep(time.Second)
		if q := cl.queue("x"); len(q) != 0 {
			t.Fatal("the release was not sent")
		}
	})
}

func TestManyCallsStayInTheWindow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect()
		mustLock(t, c, "warm")
		cl.mu.Lock()
		cl.lag = func(rep *api.Reply) time.Duration { return time.Duration(rep.Sequence%7) * 3 * time.Millisecond }
		cl.mu.Unlock()
		var group sync.WaitGroup
		for i := range 5000 {
			group.Go(func() {
				l := mustLock(t, c, fmt.Sprint("lock", i))
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		cl.inspect(func(st *state) {
			if st.most >= 1024 || st.most < 100 {
				t.Errorf("a server had to keep %d answers", st.most)
			}
		})
	})
}
