package conclave

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave/internal/boottime"
	"github.com/conclave-io/conclave/service/api"
)

// A holder that is asked to leave stops, and nobody else enters before it says
// that it has.
func TestRevokedHolderLeavesInItsOwnTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 3)
		holder, operator := cl.connect(), cl.connect()
		l := mustLock(t, holder, "a")
		fence, _ := l.Fence()
		revoked, err := operator.Revoke(t.Context(), "a", "maintenance")
		if err != nil || revoked != fence {
			t.Fatalf("revoked the fence %d, %v; want %d", revoked, err, fence)
		}
		synctest.Wait()
		var why *RevokedError
		if cause := context.Cause(l.Context()); !errors.As(cause, &why) || why.Reason != "maintenance" || !errors.Is(cause, ErrLost) {
			t.Fatalf("the cause is %v", cause)
		}
		if _, err := l.Fence(); !errors.Is(err, ErrRevoked) || !strings.Contains(err.Error(), "maintenance") {
			t.Fatalf("the fence is refused with %v", err)
		}
		if _, err := operator.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Fatalf("before the holder has left: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrNotHeld) {
			t.Fatalf("unlocked twice: %v", err)
		}
		if err := mustLock(t, operator, "a").Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Revoke(t.Context(), "a", ""); !errors.Is(err, ErrNotFound) {
			t.Fatalf("nobody holds: %v", err)
		}
	})
}

// If nobody tells the holder at once, the next renewal does.
func TestRenewalTellsOfARevocation(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		cl.inspect(func(st *state) { st.quiet = true })
		holder, operator := cl.connect(), cl.connect()
		l := mustLock(t, holder, "a")
		if _, err := operator.Revoke(t.Context(), "a", "unheard"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if l.Context().Err() != nil {
			t.Fatal("it was told by nobody and knows")
		}
		time.Sleep(DefaultTTL/4 + time.Second)
		if cause := context.Cause(l.Context()); !errors.Is(cause, ErrRevoked) {
			t.Fatalf("after a renewal the cause is %v", cause)
		}
	})
}

func TestWrongOptionsAreRefusedHere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 1).connect()
		for want, call := range map[string]func() error{
			"shared and has the limit 3": func() error { _, err := c.Lock(t.Context(), "a", Shared(), Limit(3)); return err },
			"give 1 to 1048576":          func() error { _, err := c.TryLock(t.Context(), "a", Limit(MaxLimit+1)); return err },
			"give 0 to 1h0m0s":           func() error { _, err := c.Campaign(t.Context(), "a", nil, Patience(-1)); return err },
			"give at most 256":           func() error { _, err := c.Revoke(t.Context(), "a", strings.Repeat("x", 257)); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
}

// A deadline that a renewal moved is not one of a hold which the same renewal
// says is revoked: who reads the deadline must find the context ended.
func TestRevocationEndsTheHoldBeforeTheDeadlineMoves(t *testing.T) {
	b := newSessionBench(10 * time.Second)
	b.open(t)
	r := b.acquire()
	b.flush()
	b.answer(r.sequence, api.Code_CODE_OK, fence(7))
	h := &hold{session: b.s, sequence: r.sequence, ctx: newHoldContext(b.s.lease), moved: make(chan struct{}, 1)}
	b.s.grants[r.sequence] = h
	before := b.s.lease.deadline()
	looked := false
	b.s.lease.now = func() boottime.Time { // the lease looks at the clock before it moves
		if !looked && (h.ctx.Context.Err() == nil || b.s.lease.deadline() != before) {
			t.Error("the deadline is about to move and the hold is not revoked, or it has moved")
		}
		looked = true
		return b.now
	}
	b.now = b.now.Add(2 * time.Second)
	b.s.extend(b.now)
	b.flush()
	b.answer(r.sequence+1, api.Code_CODE_OK, remaining(10*time.Second), func(rep *api.Reply) { rep.Revoked = []uint64{r.sequence} })
	if !looked || b.s.lease.deadline() == before || !errors.Is(context.Cause(h.ctx), ErrRevoked) {
		t.Errorf("looked: %t, moved by %v, cause %v", looked, b.s.lease.deadline().Sub(before), context.Cause(h.ctx))
	}
}

func TestTryCampaign(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		cl := newCluster(t, 1)
		first, second := cl.connect(), cl.connect()
		l, err := first.TryCampaign(t.Context(), "e", []byte("a"), Priority(3))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.TryCampaign(t.Context(), "e", nil); !errors.Is(err, ErrHeld) || !strings.HasPrefix(err.Error(), `conclave: election "e" is led by process `) {
			t.Errorf("got %v", err)
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
