package client_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// A copy of the program, or an operator, ends the session. The server reports it in one
// reply that belongs to no request, and all holds end at once instead of at the next
// renewal.
func TestSessionClosedElsewhereIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		c := cl.Connect()
		l := clienttest.Lock(t, c, "a")
		before := time.Now()
		session := c.SessionID()
		cl.End(cl.Secret(l), true)
		synctest.Wait()
		if cause := context.Cause(l.Context()); !errors.Is(cause, conclave.ErrLost) || time.Since(before) != 0 {
			t.Fatalf("after %v the cause is %v", time.Since(before), cause)
		}
		if clienttest.Lock(t, c, "a"); c.SessionID() == session {
			t.Fatal("the session that ended serves again")
		}
	})
}
