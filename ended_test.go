package conclave

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/api"
)

// A copy of the program, or an operator, ends the session. The server reports it in one
// reply that belongs to no request, and all holds end at once instead of at the next
// renewal.
func TestSessionClosedElsewhereIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		c := cl.connect()
		l := mustLock(t, c, "a")
		before := time.Now()
		cl.mu.Lock()
		id := string(l.h.call.Session().Secret())
		cl.state.end(id)
		cl.deliver([]*api.Reply{answer(id, 0, api.Code_CODE_SESSION_GONE)})
		cl.mu.Unlock()
		synctest.Wait()
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLost) || time.Since(before) != 0 {
			t.Fatalf("after %v the cause is %v", time.Since(before), cause)
		}
		if again := mustLock(t, c, "a"); again.h.call.Session() == l.h.call.Session() {
			t.Fatal("the session that ended serves again")
		}
	})
}

// What is told to terminals has no control characters, or the servers refuse it.
func TestClippedTextsAreTakenByServers(t *testing.T) {
	if got := clip("a\x1b[2J\x00b\xff\u0085é"); got != "a[2Jbé" {
		t.Errorf("clipped to %q", got)
	}
}
