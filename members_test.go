package conclave

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestNewServersAreFound stops the only configured server after another server has told
// the client about the rest.
func TestNewServersAreFound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		cl.told = []string{cl.servers[0].address, cl.servers[1].address, "gone.test:7400"}
		c := cl.connect(func(cfg *Config) { cfg.Servers = cfg.Servers[:1] })
		held := mustLock(t, c, "x")
		cl.servers[0].kill()
		cl.lead(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "y"); err != nil {
			t.Fatal(err)
		}
		if c.Server() != cl.servers[1].address {
			t.Errorf("attached to %q", c.Server())
		}
		if err := held.Context().Err(); err != nil {
			t.Errorf("the lock that was held is lost: %v", err)
		}
	})
}

// TestAnIdleClientIsTold stops the only known server before the client has made another
// request.
func TestAnIdleClientIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		c := cl.connect(func(cfg *Config) { cfg.Servers = cfg.Servers[:1] })
		mustLock(t, c, "x")
		cl.tell(cl.servers[0].address, cl.servers[1].address)
		synctest.Wait()
		cl.servers[0].kill()
		cl.lead(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "y"); err != nil {
			t.Fatal(err)
		}
	})
}
