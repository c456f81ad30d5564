package conclave

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/service/api"
)

// A copy of the program, or an operator, ends the session: one reply, to no request,
// says so, and everything held ends at once instead of at the next renewal.
func TestSessionClosedElsewhereIsToldAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		c := cl.connect()
		l := mustLock(t, c, "a")
		before := time.Now()
		cl.mu.Lock()
		id := string(l.h.session.secret)
		cl.state.end(id)
		cl.deliver([]*api.Reply{answer(id, 0, api.Code_CODE_SESSION_GONE)})
		cl.mu.Unlock()
		synctest.Wait()
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrLost) || time.Since(before) != 0 {
			t.Fatalf("after %v the cause is %v", time.Since(before), cause)
		}
		if again := mustLock(t, c, "a"); again.h.session == l.h.session {
			t.Fatal("the session that ended serves again")
		}
	})
}

// A session that an operator is ending acquires nothing more: the caller is told, and
// does not wait. Only a reply with a fence speaks of a hold.
func TestAcquireInASessionThatIsBeingEnded(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	b.flush()
	b.answer(r.sequence, api.Code_CODE_REVOKED, func(rep *api.Reply) { rep.Message = "the session is being ended" })
	select {
	case o := <-r.done:
		if err := refusal("lock", "x", o.reply); !errors.Is(err, ErrRevoked) || !strings.Contains(err.Error(), "being ended") {
			t.Errorf("the call is refused with %v", err)
		}
	default:
		t.Fatal("the call waits on, though it was refused")
	}
	if len(b.s.pending) != 0 || len(b.s.asked) != 0 {
		t.Errorf("left behind: %v and %v", b.s.pending, b.s.asked)
	}
}

// What is told to terminals has no control characters, or the servers refuse it.
func TestClippedTextsAreTakenByServers(t *testing.T) {
	if got := clip("a\x1b[2J\x00b\xff\u0085é"); got != "a[2Jbé" {
		t.Errorf("clipped to %q", got)
	}
}
