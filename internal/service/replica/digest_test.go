package replica

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// A server whose state differs stops, and the others continue.
func TestServerThatDivergesStops(t *testing.T) {
	for _, diverges := range []string{"leader", "follower"} {
		t.Run(diverges, func(t *testing.T) {
			c := newCluster(t, 3, 1)
			c.cfg.DigestEvery = 16
			c.start()
			c.want(c.do(open(1, 1, 60_000*ms)), registry.OK)
			victim := c.await()
			for _, s := range c.each() {
				if diverges == "follower" && !s.replica.Leading() {
					victim = s
				}
			}
			// As by a bit of memory that flipped: a session that no entry opened.
			victim.replica.reg.Apply(0, &registry.Batch{Commands: []registry.Command{open(9, 1, 60_000*ms)}}, new(registry.Effects))
			for i := uint64(2); i < 100 && victim.stopped == nil; i++ {
				s := c.await()
				s.replica.Submit(c.now, 1, []registry.Command{acquire(1, i, fmt.Sprint("n", i))})
				c.run(5 * ms)
			}
			c.until("the server has stopped", func() bool { return victim.stopped != nil })
			var diverged *DivergedError
			if !errors.As(victim.stopped, &diverged) || diverged.ID != victim.id || !strings.Contains(diverged.Error(), "move the data directory away") {
				t.Fatalf("error %v", victim.stopped)
			}
			for _, s := range c.each() {
				if s != victim && s.stopped != nil {
					t.Errorf("server %d stopped: %v", s.id, s.stopped)
				}
			}
			c.want(c.do(acquire(1, 200, "after")), registry.OK)
		})
	}
}

// Without a majority that agrees nobody can know who is wrong.
func TestNoMajorityNoVerdict(t *testing.T) {
	c := newCluster(t, 3, 2)
	c.start()
	s := c.await()
	s.replica.digests.add(s.id, Digest{DigestVersion, 32, 7})
	others := []uint64{s.id%3 + 1, (s.id+1)%3 + 1}
	s.replica.Compare(others[0], Digest{DigestVersion, 32, 8})
	s.replica.Compare(others[1], Digest{DigestVersion + 1, 32, 8}) // made by other rules
	s.replica.Compare(others[1], Digest{DigestVersion, 48, 8})     // of another index
	s.replica.Compare(9, Digest{DigestVersion, 32, 8})             // of nobody who votes
	if s.replica.out.Err != nil {
		t.Fatal(s.replica.out.Err)
	}
	s.replica.Compare(others[1], Digest{DigestVersion, 32, 8})
	if s.replica.out.Err == nil {
		t.Fatal("two of three agree on another state, and the server goes on")
	}
}
