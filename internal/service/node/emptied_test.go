package node

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// orders are all orders in which three servers can start, one late.
var orders = [][]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}}

// late is how long after the others the last server starts: longer than two
// servers need for an election.
const late = 700 * time.Millisecond

// TestEmptiedFounderDoesNotVote plays the worst case for an emptied server: it
// and a server that lagged are a majority without the grant. With LONG set it does
// so 20 times in each order.
func TestEmptiedFounderDoesNotVote(t *testing.T) {
	rounds, atOnce := 1, 4
	if os.Getenv("LONG") != "" {
		rounds, atOnce = 20, 20
	}
	for _, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			t.Parallel()
			for i := range rounds {
				t.Run(fmt.Sprint(i), func(t *testing.T) { attackWithEmptiedFounder(t, order, late) })
			}
		})
	}
	for i := range atOnce {
		t.Run(fmt.Sprint("at once ", i), func(t *testing.T) {
			t.Parallel()
			attackWithEmptiedFounder(t, orders[5], 0)
		})
	}
}

// attackWithEmptiedFounder lets servers 1 and 3 grant a lock while 2 is down, stops all,
// removes the disk of 3, and starts them in an order, the last with a delay.
func attackWithEmptiedFounder(t *testing.T, order []uint64, delay time.Duration) {
	c := newCluster(t, 3)
	c.ok(open(1))
	c.stop(2)
	held := c.ok(acquire(2, "a"))
	c.stop(1)
	c.stop(3)
	c.empty(3)
	for i, id := range order {
		if i == len(order)-1 {
			<-time.After(delay)
		}
		c.start(id)
	}
	c.holds(held.Fence)
	other := registry.SessionID{2}
	c.ok(registry.Command{Op: registry.OpOpen, Session: other, Sequence: 1, TTL: int64(time.Minute)})
	if again := c.do(registry.Command{Op: registry.OpAcquire, Session: other, Sequence: 2, Name: "a", Try: true}); again.Code == registry.OK {
		t.Errorf("the lock is held with fence %d; another session got it with fence %d", held.Fence, again.Fence)
	}
	if again := c.do(acquire(2, "a")); again.Code != registry.OK || again.Fence != held.Fence {
		t.Errorf("the grant with fence %d was acknowledged; asked again, the answer is %+v", held.Fence, again)
	}
	c.until("the emptied server is a voter again", func() bool { return c.votes(3) })
	if next := c.ok(registry.Command{Op: registry.OpAcquire, Session: other, Sequence: 3, Name: "b"}); next.Fence <= held.Fence {
		t.Errorf("fence %d was given again, or a later one, to another session: it got %d", held.Fence, next.Fence)
	}
}

// empty takes the disk of a server that does not run.
func (c *cluster) empty(id uint64) {
	c.t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, fmt.Sprint(id))); err != nil {
		c.t.Fatal(err)
	}
}

// holds fails the test if the leader does not know that "a" is held with this
// fence.
func (c *cluster) holds(fence uint64) {
	c.t.Helper()
	state, err := c.leader().Read(c.ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	locks, _ := state.List(registry.Lock, "", "", 1, 0)
	if len(locks) != 1 || len(locks[0].Holders) != 1 || locks[0].Holders[0].Fence != fence {
		c.t.Errorf("the lock is held with fence %d; the cluster has %+v", fence, locks)
	}
}

// votes reports whether the leader counts on a server that has the log.
func (c *cluster) votes(id uint64) (yes bool) {
	_ = c.leader().View(c.ctx, func(r *replica.Replica) {
		status := r.Status()
		for _, p := range status.Peers {
			yes = yes || p.ID == id && !p.Learner && p.Match >= status.Commit
		}
	})
	return yes
}

// calm is an election timeout that ends on no busy machine.
func calm(cfg *Config) { cfg.Election = 3 * time.Second }

// TestJoinedLeaderTakesEmptiedFounderBack: a founder that lost its data knows only the
// other founders. The leader is not one of them.
func TestJoinedLeaderTakesEmptiedFounderBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	joined := c.join()
	c.remove(1)
	c.stop(2)
	c.letLead(joined)
	c.start(2)
	c.stop(3)
	c.empty(3)
	c.start(3)
	c.until("the emptied server is a voter again", func() bool { return c.nodes[3].Metrics().Leader.Load() == 4 && c.votes(3) })
	c.holds(held.Fence)
	if c.leader() != joined {
		t.Error("another server led meanwhile: the test shows nothing")
	}
}

// TestLaggingServerTakesLeaderThatJoined: a server was down when another one joined. It
// has state, and does not know the leader.
func TestLaggingServerTakesLeaderThatJoined(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, calm)
	c.ok(open(1))
	c.until("all vote", func() bool { return c.votes(1) && c.votes(2) && c.votes(3) })
	c.stop(1)
	joined := c.join()
	c.remove(2)
	c.letLead(joined)
	c.start(1)
	c.until("the server that was down has caught up", func() bool { return c.votes(1) })
	if c.leader() != joined {
		t.Error("another server led meanwhile: the test shows nothing")
	}
}

// remove removes a server, and waits until it has stopped.
func (c *cluster) remove(id uint64) {
	c.t.Helper()
	c.change(replica.Change{Kind: replica.Remove, ID: id})
	<-c.nodes[id].Done()
	delete(c.nodes, id)
}

// letLead has leaders resign until a server leads.
func (c *cluster) letLead(n *Node) {
	c.t.Helper()
	c.until("the server that joined leads", func() bool {
		leader := c.leader()
		_ = leader.View(c.ctx, func(r *replica.Replica) {
			if leader != n {
				r.Resign()
			}
		})
		return leader == n
	})
}

// join starts a server that joins the cluster, and waits until it votes.
func (c *cluster) join() *Node {
	c.t.Helper()
	l := listen(c.t)
	server := registry.Member{UID: 44, PeerAddress: l.Addr().String(), ClientAddress: "client-4"}
	id := c.change(replica.Change{Kind: replica.Join, Server: server})
	cfg := c.config(id, l)
	cfg.Joined, cfg.UID, cfg.Peers = true, server.UID, maps.Clone(c.peers)
	cfg.Peers[id] = server.PeerAddress
	n, err := Start(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
	c.until("the server that joined votes", func() bool { return c.votes(id) })
	return n
}

// change has a change of the members made by whoever leads.
func (c *cluster) change(change replica.Change) (id uint64) {
	c.t.Helper()
	c.until("the members are changed", func() bool {
		var err error
		id, err = c.leader().Change(c.ctx, change)
		return err == nil
	})
	return id
}
