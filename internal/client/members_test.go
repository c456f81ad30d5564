package client_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// TestNewServersAreFound stops the only configured server after another server has told
// the client about the rest.
func TestNewServersAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		cl.Announce(cl.Servers[0].Address, cl.Servers[1].Address, "gone.test:7400")
		c := cl.Connect(func(cfg *conclave.Config) { cfg.Servers = cfg.Servers[:1] })
		held := clienttest.Lock(t, c, "x")
		cl.Servers[0].Kill()
		cl.Lead(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "y"); err != nil {
			t.Fatal(err)
		}
		if c.Server() != cl.Servers[1].Address {
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
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		c := cl.Connect(func(cfg *conclave.Config) { cfg.Servers = cfg.Servers[:1] })
		clienttest.Lock(t, c, "x")
		cl.Tell(cl.Servers[0].Address, cl.Servers[1].Address)
		synctest.Wait()
		cl.Servers[0].Kill()
		cl.Lead(1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Lock(ctx, "y"); err != nil {
			t.Fatal(err)
		}
	})
}
