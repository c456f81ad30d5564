package conclave

import (
	"context"
	"testing"
	"time"
)

// A client that reaches only followers keeps its session, and connects to the leader when
// it can.
func TestALeaderOutOfReach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		leader := cl.servers[0].address
		cl.cut = map[string]bool{leader: true}
		c := cl.connect()
		l := mustLock(t, c, "x")
		if c.Server() == leader || c.Server() == "" {
			t.Fatalf("attached to %q", c.Server())
		}
		time.Sleep(10 * c.cfg.TTL)
		if l.Context().Err() != nil {
			t.Fatalf("the lock is lost: %v", context.Cause(l.Context()))
		}
		mustLock(t, c, "y")

		cl.mu.Lock()
		cl.cut = nil
		cl.mu.Unlock()
		time.Sleep(7 * time.Second) // a connection that is being made may take so long
		if c.Server() != leader {
			t.Errorf("the leader can be reached; attached to %q", c.Server())
		}
		if l.Context().Err() != nil {
			t.Errorf("the lock is lost: %v", context.Cause(l.Context()))
		}
		dials := cl.servers[1].dials.Load() + cl.servers[2].dials.Load()
		time.Sleep(time.Minute)
		if more := cl.servers[1].dials.Load() + cl.servers[2].dials.Load(); more != dials {
			t.Errorf("attached to the leader, it dialled others %d times", more-dials)
		}
	})
}

// The network to the leader in use is cut. The session survives that, even with a short
// TTL.
func TestALeaderGetsOutOfReach(t *testing.T) {
	for _, refused := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			cl := newCluster(t, 3)
			c := cl.connect()
			l := mustLock(t, c, "x")
			for range 5 {
				leader := cl.servers[0]
				if c.Server() != leader.address {
					t.Fatalf("attached to %q", c.Server())
				}
				if refused {
					leader.kill() // its clients' port, as it were
				} else {
					leader.stop()
				}
				time.Sleep(5 * c.cfg.TTL)
				if l.Context().Err() != nil {
					t.Fatalf("refused %v: the lock is lost: %v", refused, context.Cause(l.Context()))
				}
				if refused {
					leader.start()
				} else {
					leader.resume()
				}
				time.Sleep(6 * time.Second)
			}
			mustLock(t, c, "y")
		})
	}
}

// The client attaches to a reachable new leader at once, without a relay.
func TestANewLeaderWithinReach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		cl.cut = map[string]bool{cl.servers[0].address: true}
		c := cl.connect()
		l := mustLock(t, c, "x")
		for _, next := range []int{1, 2, 0, 2, 1} {
			cl.lead(next)
			time.Sleep(c.cfg.TTL)
			if next != 0 && c.Server() != cl.servers[next].address {
				t.Errorf("server %d leads, attached to %q", next+1, c.Server())
			}
			if l.Context().Err() != nil {
				t.Fatalf("the lock is lost: %v", context.Cause(l.Context()))
			}
		}
	})
}
