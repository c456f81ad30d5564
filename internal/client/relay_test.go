package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// ttl is that of the clients of these tests.
const ttl = 2 * time.Second

// A client that reaches only followers keeps its session, and connects to the leader when
// it can.
func TestALeaderOutOfReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		leader := cl.Servers[0].Address
		cl.Cut(leader)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "x")
		if c.Server() == leader || c.Server() == "" {
			t.Fatalf("attached to %q", c.Server())
		}
		time.Sleep(10 * ttl)
		if l.Context().Err() != nil {
			t.Fatalf("the lock is lost: %v", context.Cause(l.Context()))
		}
		clienttest.Lock(t, c, "y")

		cl.Cut()
		time.Sleep(7 * time.Second) // a connection that is being made may take so long
		if c.Server() != leader {
			t.Errorf("the leader can be reached; attached to %q", c.Server())
		}
		if l.Context().Err() != nil {
			t.Errorf("the lock is lost: %v", context.Cause(l.Context()))
		}
		dials := cl.Servers[1].Dials.Load() + cl.Servers[2].Dials.Load()
		time.Sleep(time.Minute)
		if more := cl.Servers[1].Dials.Load() + cl.Servers[2].Dials.Load(); more != dials {
			t.Errorf("attached to the leader, it dialled others %d times", more-dials)
		}
	})
}

// The network to the leader in use is cut. The session survives that, even with a short
// TTL.
func TestALeaderGetsOutOfReach(t *testing.T) {
	for _, refused := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cl := clienttest.New(t, 3)
			c := cl.Connect()
			l := clienttest.Lock(t, c, "x")
			for range 5 {
				leader := cl.Servers[0]
				if c.Server() != leader.Address {
					t.Fatalf("attached to %q", c.Server())
				}
				if refused {
					leader.Kill() // its clients' port, as it were
				} else {
					leader.Stop()
				}
				time.Sleep(5 * ttl)
				if l.Context().Err() != nil {
					t.Fatalf("refused %v: the lock is lost: %v", refused, context.Cause(l.Context()))
				}
				if refused {
					leader.Start()
				} else {
					leader.Resume()
				}
				time.Sleep(6 * time.Second)
			}
			clienttest.Lock(t, c, "y")
		})
	}
}

// The client attaches to a reachable new leader at once, without a relay.
func TestANewLeaderWithinReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		cl.Cut(cl.Servers[0].Address)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "x")
		for _, next := range []int{1, 2, 0, 2, 1} {
			cl.Lead(next)
			time.Sleep(ttl)
			if next != 0 && c.Server() != cl.Servers[next].Address {
				t.Errorf("server %d leads, attached to %q", next+1, c.Server())
			}
			if l.Context().Err() != nil {
				t.Fatalf("the lock is lost: %v", context.Cause(l.Context()))
			}
		}
	})
}
