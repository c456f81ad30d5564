package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// A holder that is asked to leave stops, and no other client enters before it has
// reported that.
func TestRevokedHolderLeavesInItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 3)
		holder, operator := cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, holder, "a")
		fence, _ := l.Fence()
		revoked, err := admin.New(operator).Revoke(t.Context(), "a", "maintenance")
		if err != nil || revoked != fence {
			t.Fatalf("revoked the fence %d, %v; want %d", revoked, err, fence)
		}
		synctest.Wait()
		var why *conclave.RevokedError
		if cause := context.Cause(l.Context()); !errors.As(cause, &why) || why.Reason != "maintenance" || !errors.Is(cause, conclave.ErrLost) {
			t.Fatalf("the cause is %v", cause)
		}
		if _, err := l.Fence(); !errors.Is(err, conclave.ErrRevoked) || !strings.Contains(err.Error(), "maintenance") {
			t.Fatalf("the fence is refused with %v", err)
		}
		if _, err := operator.TryLock(t.Context(), "a"); !errors.Is(err, conclave.ErrHeld) {
			t.Fatalf("before the holder has left: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, conclave.ErrNotHeld) {
			t.Fatalf("unlocked twice: %v", err)
		}
		if err := clienttest.Lock(t, operator, "a").Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.New(operator).Revoke(t.Context(), "a", ""); !errors.Is(err, conclave.ErrNotFound) {
			t.Fatalf("nobody holds: %v", err)
		}
	})
}

// If nobody tells the holder at once, the next renewal does.
func TestRenewalTellsOfARevocation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		cl.Inspect(func(st *clienttest.State) { st.Quiet = true })
		holder, operator := cl.Connect(), cl.Connect()
		l := clienttest.Lock(t, holder, "a")
		if _, err := admin.New(operator).Revoke(t.Context(), "a", "unheard"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if l.Context().Err() != nil {
			t.Fatal("it was told by nobody and knows")
		}
		time.Sleep(conclave.DefaultTTL/4 + time.Second)
		if cause := context.Cause(l.Context()); !errors.Is(cause, conclave.ErrRevoked) {
			t.Fatalf("after a renewal the cause is %v", cause)
		}
	})
}

// A hold is revoked before its grant has arrived, and the servers drop it. Another client holds the
// lock when the grant arrives, so the caller does not enter, but waits for its next turn.
func TestRevokedBeforeTheGrantArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		cl.Inspect(func(st *clienttest.State) { st.Quiet = true })
		first, second, third := cl.Connect(), cl.Connect(), cl.Connect()
		held := clienttest.Lock(t, first, "a")
		slow := clienttest.InBackground(t.Context(), second, "a")
		synctest.Wait()
		next := clienttest.InBackground(t.Context(), third, "a")
		synctest.Wait()
		cl.Delay(func(rep *api.Reply) time.Duration {
			if rep.Fence == 2 && rep.Sequence == 2 { // the grant of the second
				return 6 * time.Second
			}
			return 0
		})
		if err := held.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.New(first).Revoke(t.Context(), "a", "make room"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // renewals report the revocation
		cl.Release("a")             // the servers drop the hold
		o := <-next
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		time.Sleep(6 * time.Second) // the grant arrives
		synctest.Wait()
		select {
		case late := <-slow:
			t.Fatalf("another holds the lock, and it enters: %v, %v", late.Lock, late.Err)
		default:
		}
		if err := o.Lock.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := <-slow
		if late.Err != nil {
			t.Fatal(late.Err)
		}
		if fence, err := late.Lock.Fence(); fence != 4 || err != nil {
			t.Fatalf("fence %d, %v", fence, err)
		}
	})
}

func TestWrongOptionsAreRefusedHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clienttest.New(t, 1).Connect()
		for want, call := range map[string]func() error{
			"limit: 3: cannot be combined with Shared": func() error { _, err := c.Lock(t.Context(), "a", conclave.Shared(), conclave.Limit(3)); return err },
			"must be between 1 and 1048576":            func() error { _, err := c.TryLock(t.Context(), "a", conclave.Limit(conclave.MaxLimit+1)); return err },
			"must be between 0s and 1h0m0s":            func() error { _, err := c.Campaign(t.Context(), "a", nil, conclave.Patience(-1)); return err },
			"must have at most 256":                    func() error { _, err := admin.New(c).Revoke(t.Context(), "a", strings.Repeat("x", 257)); return err },
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
}

func TestTryCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := clienttest.New(t, 1)
		first, second := cl.Connect(), cl.Connect()
		l, err := first.TryCampaign(t.Context(), "e", []byte("a"), conclave.Priority(3))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := second.TryCampaign(t.Context(), "e", nil); !errors.Is(err, conclave.ErrHeld) || !strings.HasPrefix(err.Error(), `conclave: election "e" is led by process `) {
			t.Errorf("got %v", err)
		}
		if err := l.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
