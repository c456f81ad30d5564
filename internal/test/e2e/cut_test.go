//go:build linux

package e2e

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// TestCutsOfServers: while programs take locks at three servers, and one server is killed
// and comes back, each cut has exactly one token of each lock.
func TestCutsOfServers(t *testing.T) {
	t.Parallel()
	c := guarded(t, 3)
	tokens := []string{"suzuki-kasami", "raymond", "token-ring", "naimi-trehel"}
	control := dial(t, conclave.Config{Servers: c.Addresses()})
	if _, err := admin.New(control).Cut(within(t), ""); !errors.Is(err, conclave.ErrNotFound) {
		t.Errorf("without an algorithm: %v", err)
	}
	for _, name := range tokens {
		tell(t, c, "namespace", "set", name+"/", "--algorithm", name)
	}
	members(t, control, 3)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for _, address := range c.Addresses() {
		client := dial(t, conclave.Config{Servers: c.Addresses(), Home: address})
		for _, name := range tokens {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					if l, err := client.Lock(within(t), name+"/x"); err == nil { // it may have lost its home
						_ = l.Unlock(within(t))
					}
				}
			})
		}
	}
	record := func(rounds int) (locks, moving int) {
		for range rounds {
			cut, err := admin.New(control).Cut(within(t), "")
			if err != nil {
				t.Errorf("no cut: %v", err)
				return locks, moving
			}
			for _, l := range cut.Locks {
				locks++
				moving += len(l.Messages)
				if !l.OneToken || l.Tokens != 1 || l.Wrong != "" || len(l.Machines) != len(cut.Members) {
					t.Errorf("a cut has %+v", l)
				}
			}
		}
		return locks, moving
	}
	until(t, "all locks are taken", func() bool {
		cut, err := admin.New(control).Cut(within(t), "")
		return err == nil && len(cut.Locks) == len(tokens)
	})
	begun := time.Now()
	locks, moving := record(100)
	t.Logf("100 cuts in %v have %d locks, and %d messages on their way", time.Since(begun), locks, moving)
	if locks < 400 || moving == 0 {
		t.Errorf("%d locks and %d messages: that does not test much", locks, moving)
	}
	if err := c.Kill(2); err != nil {
		t.Fatal(err)
	}
	record(3) // the first may wait for the seat of the dead server to end
	members(t, control, 2)
	if err := c.Restart(2); err != nil {
		t.Fatal(err)
	}
	record(10)
	said := tell(t, c, "cut", "raymond/")
	for _, want := range []string{"epoch ", "raymond/x", "STATE", "holder=", "Locks with exactly one token, as their algorithm promises: 1."} {
		if !strings.Contains(said, want) {
			t.Errorf("cut does not say %q:\n%s", want, said)
		}
	}
	if said := tell(t, c, "cut", "--json", "raymond/"); !strings.Contains(said, `"tokens": 1`) && !strings.Contains(said, `"tokens":1`) {
		t.Errorf("cut --json says %s", said)
	}
	close(stop)
	all.Wait()
	t.Log("\n" + said)
}
