package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/test/clienttest"
)

// A lock that an algorithm guards is taken at a home, those of agreement at the leader,
// with one client. When the guard has changed the client finds out by itself.
func TestLocksAreTakenWhereTheyAreGuarded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clienttest.New(t, 3)
		c.Guard("live/", 2)
		client := c.Connect()
		home, err := client.Lock(t.Context(), "live/a")
		if err != nil {
			t.Fatal(err)
		}
		agreed, err := client.Lock(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		left := home.Deadline() - time.Duration(c.Now())
		if left > 1080*time.Millisecond {
			t.Errorf("the hold at the home is believed for %v, beyond the lease of its seat", left)
		}
		if _, err = client.TryLock(t.Context(), "live/a"); !errors.Is(err, conclave.ErrHeld) {
			t.Errorf("a try of what is held ends with %v", err)
		}
		time.Sleep(3 * time.Second) // both sessions are renewed
		for _, l := range []*conclave.Lock{home, agreed} {
			if _, err = l.Fence(); err != nil {
				t.Error(err)
			}
			if err = l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		c.Unguard()
		if _, err = client.Lock(t.Context(), "live/a"); err != nil {
			t.Error(err)
		}
		var agreedLocks int
		c.Inspect(func(st *clienttest.State) { agreedLocks = len(st.Resources) })
		if agreedLocks == 0 || c.AtHome() != 0 {
			t.Errorf("agreement has %d resources, the home %d", agreedLocks, c.AtHome())
		}
	})
}

func TestALockGuardedByAnAlgorithmIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clienttest.New(t, 1)
		c.Guard("live/", 0)
		client := c.Connect()
		for _, option := range []conclave.LockOption{conclave.Shared(), conclave.Limit(2)} {
			_, err := client.Lock(t.Context(), "live/a", option)
			var guarded *conclave.GuardedError
			if !errors.As(err, &guarded) || guarded.Algorithm != "suzuki-kasami" || guarded.Prefix != "live/" {
				t.Errorf("got %v", err)
			}
		}
	})
}

// A home that lost its seat has forgotten what was held.
func TestALockIsLostWithTheSeatOfItsHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clienttest.New(t, 1)
		c.Guard("live/", 0)
		client := c.Connect()
		lock, err := client.Lock(t.Context(), "live/a")
		if err != nil {
			t.Fatal(err)
		}
		c.LoseSeat()
		<-lock.Context().Done()
		if err = lock.Context().Err(); err == nil {
			t.Error("the context has no error")
		}
		if _, err = lock.Fence(); !errors.Is(err, conclave.ErrLost) {
			t.Errorf("the fence: %v", err)
		}
		if _, err = client.Lock(t.Context(), "live/a"); err != nil {
			t.Error(err)
		}
	})
}
