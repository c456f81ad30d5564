package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/client"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// A client that lives for months reconnects many times, and keeps nothing of it.
func TestStreamsThatEndedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		for range 5 {
			clienttest.Lock(t, c, "x").Unlock(t.Context())
			cl.Servers[0].Kill()
			time.Sleep(time.Second)
			cl.Servers[0].Start()
		}
		clienttest.Lock(t, c, "x")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := client.Of(c).Streams(); n > 1 {
			t.Errorf("%d streams are kept", n)
		}
	})
}
