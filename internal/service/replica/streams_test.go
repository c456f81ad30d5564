package replica

import (
	"testing"

	"github.com/conclave-io/conclave/internal/service/lease"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// A client that suspects its stream also sends its unfinished requests over a second one.
// If the first one works after all, the client closes the second. A grant must not be
// lost with it, because the session would have a hold that the client does not know.
func TestGrantFindsTheStreamThatIsLeft(t *testing.T) {
	const first, second = 11, 12
	c := newCluster(t, 3, 1)
	c.start()
	s := c.await()
	submit := func(conn uint64, commands ...registry.Command) {
		s.replica.Submit(c.now, conn, commands)
		c.run(50 * ms)
	}
	submit(1, open(1, 1, 10_000*ms), acquire(1, 2, "x"))
	submit(first, open(2, 1, 10_000*ms), acquire(2, 2, "x"))
	submit(second, acquire(2, 2, "x"), renew(2, 3)) // beside the first
	if got := s.replica.clients.homes[id(2)]; got != (lease.Streams{second, first}) {
		t.Fatalf("the session was renewed over %v", got)
	}
	c.replies = nil
	submit(1, release(1, 3, 2))
	told := make(map[uint64]int)
	for _, r := range c.replies {
		if r.Session == id(2) && r.Sequence == 2 && r.Result.Code == registry.OK && r.Result.Fence != 0 {
			told[r.Conn]++
		}
	}
	if told[first] != 1 || told[second] != 1 {
		t.Errorf("the grant was told over the streams %v: want once over %d and once over %d, whichever is left", told, first, second)
	}
}
