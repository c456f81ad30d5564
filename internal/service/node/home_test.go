package node

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/version"
)

// guardedCluster returns a cluster at the level of guarded names.
func guardedCluster(t *testing.T, n int) *cluster {
	c := newCluster(t, n, func(cfg *Config) {
		cfg.Limits.Levels.Max, cfg.Limits.LevelSoak = version.Guarded, 1e6
	})
	c.until("the level is that of guarded names", func() (there bool) {
		_ = c.leader().View(c.ctx, func(r *replica.Replica) { there = r.Level() == version.Guarded })
		return there
	})
	return c
}

// guard has an algorithm guard a prefix, or agreement if it has no name.
func (c *cluster) guard(prefix string, u view.Use) registry.Result {
	c.t.Helper()
	n := byte(guardRequests.Add(1))
	return c.do(registry.Command{Op: registry.OpGuard, Name: prefix, Guarding: &registry.Guarding{Use: u}, By: &registry.Origin{Request: [16]byte{9, n}}})
}

var guardRequests atomic.Uint32

// members waits until n nodes are open in one epoch whose guards do not change.
func (c *cluster) members(n int) {
	c.t.Helper()
	c.until(fmt.Sprintf("%d nodes are open", n), func() bool {
		var epochs []uint64
		for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
			if s := c.nodes[id].Home().Status(); s.State == view.Open && len(s.View.Members) == n && !s.Lapsed {
				epochs = append(epochs, s.View.Epoch)
			}
		}
		drains := false
		_ = c.leader().View(c.ctx, func(r *replica.Replica) {
			drains = slices.ContainsFunc(r.Registry().Guarded().Guards, func(g view.Guard) bool { return g.Change != 0 })
		})
		return !drains && len(epochs) == n && len(slices.Compact(epochs)) == 1
	})
}

// tenant is a client of a home, with a session of its own.
type tenant struct {
	t        *testing.T
	conn     *home.Conn
	told     *recorder
	session  registry.SessionID
	sequence uint64
}

var tenants struct {
	sync.Mutex
	n byte
}

func (c *cluster) tenant(id uint64) *tenant {
	x := &tenant{t: c.t, told: newRecorder()}
	tenants.Lock()
	tenants.n++
	x.session = registry.SessionID{7, tenants.n}
	tenants.Unlock()
	var err error
	if x.conn, err = c.nodes[id].Home().Connect(x.told); err != nil {
		c.t.Error(err)
	}
	x.do(registry.Command{Op: registry.OpOpen, TTL: int64(10 * time.Second)})
	return x
}

// do has a command carried out, and renews the session while that takes.
func (x *tenant) do(c registry.Command) registry.Result {
	x.sequence++
	sequence := x.sequence
	c.Session, c.Sequence, c.Low = x.session, sequence, sequence
	_ = x.conn.Submit(x.t.Context(), []registry.Command{c})
	renew := time.NewTicker(50 * time.Millisecond)
	defer renew.Stop()
	for deadline := time.After(testTimeout); ; {
		select {
		case r := <-x.told.replies:
			if r.Sequence == sequence && r.Result.Code != registry.Queued || r.Result.Code == registry.SessionGone {
				return r.Result
			}
		case <-renew.C:
			x.renew()
		case <-x.told.deposed:
			return registry.Result{Code: registry.NotMember}
		case <-deadline:
			x.t.Errorf("no answer to %+v", c)
			return registry.Result{Code: registry.Unavailable}
		}
	}
}

func (x *tenant) renew() {
	x.sequence++
	_ = x.conn.Submit(x.t.Context(), []registry.Command{{Op: registry.OpRenew, Session: x.session, Sequence: x.sequence}})
}

// lock takes a lock, and returns the number of the hold and its fence.
func (x *tenant) lock(name string) (hold, fence uint64) {
	hold = x.sequence + 1
	r := x.do(registry.Command{Op: registry.OpAcquire, Name: name})
	if r.Code != registry.OK {
		x.t.Errorf("%s: code %d: %s", name, r.Code, r.Message)
	}
	return hold, r.Fence
}

func (x *tenant) release(hold uint64) {
	if r := x.do(registry.Command{Op: registry.OpRelease, Hold: hold}); r.Code != registry.OK {
		x.t.Errorf("release: code %d: %s", r.Code, r.Message)
	}
}

// holders checks the holders of each lock: one at a time, and with growing fences.
type holders struct {
	sync.Mutex
	held  map[string]bool
	fence map[string]uint64
}

func (h *holders) take(t *testing.T, name string, fence uint64) {
	h.Lock()
	defer h.Unlock()
	if h.held[name] {
		t.Errorf("%s: two hold it", name)
	}
	if fence <= h.fence[name] {
		t.Errorf("%s: fence %d after %d", name, fence, h.fence[name])
	}
	h.held[name], h.fence[name] = true, fence
}

func (h *holders) leave(name string) {
	h.Lock()
	defer h.Unlock()
	h.held[name] = false
}

// TestAlgorithmsBetweenNodes: each algorithm guards a lock, and clients at all nodes ask
// for it at the same time. Each gets it, one after another. Then agreement guards them
// again, and its fences are larger.
func TestAlgorithmsBetweenNodes(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, 3)
	if links := c.nodes[1].Home().Status().Links; len(links) > 0 {
		t.Errorf("there are lanes, and no algorithm guards a name: %v", links)
	}
	for _, spec := range served.Locks {
		u := view.Use{Algorithm: spec.Name}
		if spec.Name == "k-ricart-agrawala" {
			u.Options = "k=1"
		}
		if r := c.guard(spec.Name+"/", u); r.Code != registry.OK {
			t.Fatalf("%s: code %d: %s", spec.Name, r.Code, r.Message)
		}
	}
	c.members(3)
	judge := &holders{held: make(map[string]bool), fence: make(map[string]uint64)}
	var all sync.WaitGroup
	for _, spec := range served.Locks {
		for id := range uint64(3) {
			x := c.tenant(id + 1)
			all.Go(func() {
				name := spec.Name + "/lock"
				for range 3 {
					hold, fence := x.lock(name)
					judge.take(t, name, fence)
					judge.leave(name)
					x.release(hold)
				}
				x.do(registry.Command{Op: registry.OpClose})
			})
		}
	}
	all.Wait()
	if t.Failed() {
		return
	}
	c.guard("central/", view.Use{})
	c.until("agreement guards the prefix", func() (done bool) {
		_ = c.leader().View(c.ctx, func(r *replica.Replica) { done = !r.Registry().Guarded().Find("central/").Use.Guarded() })
		return done
	})
	x := c.tenant(2)
	if r := x.do(registry.Command{Op: registry.OpAcquire, Name: "central/lock"}); r.Code != registry.Moved {
		t.Errorf("a home answers code %d: %s", r.Code, r.Message)
	}
	c.ok(open(1))
	if r := c.ok(acquire(2, "central/lock")); r.Fence <= judge.fence["central/lock"] {
		t.Errorf("fence %d after %d", r.Fence, judge.fence["central/lock"])
	}
	if r := c.do(acquire(3, "raymond/lock")); r.Code != registry.Moved || r.Guard == nil || r.Guard.Algorithm != "raymond" {
		t.Errorf("the leader answers code %d: %s", r.Code, r.Message)
	}
}

// TestHomeThatDies: its client's lock goes to the client of another home when the seat's
// lease is over. The server comes back with another seat.
func TestHomeThatDies(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, 3)
	c.guard("a/", view.Use{Algorithm: "suzuki-kasami"})
	c.members(3)
	victim := c.leader().cfg.ID%3 + 1
	lost := c.tenant(victim)
	_, fence := lost.lock("a/1")
	next := c.tenant(victim%3 + 1)
	granted := make(chan uint64)
	go func() {
		_, fence := next.lock("a/1")
		granted <- fence
	}()
	c.kill(victim)
	select {
	case <-lost.told.deposed:
	case <-time.After(testTimeout):
		t.Error("the client of the home was not told")
	}
	died := time.Now()
	if later := <-granted; later <= fence {
		t.Errorf("fence %d after %d", later, fence)
	}
	t.Logf("next entry after %v", time.Since(died))
	c.members(2)
	c.start(victim)
	c.members(3)
}

// TestHomeThatLeaves: the clients of a server that is stopped continue at another one, with
// what they hold. The seat ends at once.
func TestHomeThatLeaves(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, 3)
	c.guard("a/", view.Use{Algorithm: "ricart-agrawala"})
	c.members(3)
	leaver := c.leader().cfg.ID
	node := c.nodes[leaver]
	x := c.tenant(leaver)
	hold, fence := x.lock("a/1")
	next := c.tenant(leaver%3 + 1)
	granted := make(chan uint64, 1)
	var waits sync.WaitGroup
	waits.Go(func() {
		_, fence := next.lock("a/1")
		granted <- fence
	})
	c.stop(leaver)
	select {
	case <-x.told.deposed:
	case <-granted:
		t.Fatal("granted to another while it is held")
	}
	seat := x.conn.Seat
	heir := c.nodes[node.Home().Successor()]
	if heir == nil {
		t.Fatalf("server %d has taken over", node.Home().Successor())
	}
	x.told = newRecorder()
	var err error
	if x.conn, err = heir.Home().Connect(x.told); err != nil || !slices.Contains(x.conn.Adopted, seat) {
		t.Fatalf("the seats that it has adopted are %v, %v", x.conn.Adopted, err)
	}
	x.renew()
	c.members(2)
	if res, known, _ := heir.Home().Explain("a/1", 0); !known || len(res.Holders) != 1 || res.Holders[0].Fence != fence {
		t.Errorf("after the server has left, the lock is %+v", res)
	}
	_ = c.leader().View(c.ctx, func(r *replica.Replica) {
		for _, s := range r.Registry().Guarded().Seats {
			if s.Server == leaver {
				t.Error("the seat of a server that has left is still there")
			}
		}
	})
	x.release(hold)
	waits.Wait()
	if later := <-granted; later <= fence {
		t.Errorf("fence %d after %d", later, fence)
	}
}

// kill ends a node that has no time to give up its seat.
func (c *cluster) kill(id uint64) {
	n := c.nodes[id]
	n.stopOnce.Do(func() { close(n.stop) })
	<-n.done
	delete(c.nodes, id)
}

// TestGuardsNeedALevel: below it they are refused, in one line.
func TestGuardsNeedALevel(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	r := c.guard("a/", view.Use{Algorithm: "central"})
	if r.Code != registry.Invalid || !strings.Contains(r.Message, "from level 3 on") {
		t.Errorf("code %d: %s", r.Code, r.Message)
	}
	if _, err := c.leader().Home().Connect(newRecorder()); !errors.Is(err, home.ErrNotMember) {
		t.Errorf("connecting to a home: %v", err)
	}
}

// TestMessagesOfAnEntry: without contention, an entry between real servers takes the
// number of messages that the algorithm claims.
func TestMessagesOfAnEntry(t *testing.T) {
	t.Parallel()
	c := guardedCluster(t, 3)
	per := map[string]uint64{ // with three servers
		"lamport": 6, "ricart-agrawala": 4, "central-clock": 4, "maekawa": 3,
		"ricart-agrawala-token": 0, "suzuki-kasami": 0, "raymond": 0, "singhal": 0, // once the token is there
	}
	for name := range per {
		c.guard(name+"/", view.Use{Algorithm: name})
	}
	c.members(3)
	x := c.tenant(2)
	sent := func() (n uint64) {
		for _, node := range c.nodes {
			n += node.Home().Status().Messages
		}
		return n
	}
	for _, name := range slices.Sorted(maps.Keys(per)) {
		enter := func() {
			hold, _ := x.lock(name + "/lock")
			x.release(hold)
		}
		enter()
		const entries = 20
		before := uint64(0)
		c.until("all is quiet", func() bool {
			last := before
			before = sent()
			return last == before
		})
		for range entries {
			enter()
		}
		want := before + entries*per[name]
		c.until(fmt.Sprintf("%d messages for %d entries of %s", want-before, entries, name), func() bool { return sent() >= want })
		if got := sent() - before; got != want-before {
			t.Errorf("%s: %d messages for %d entries, want %d", name, got, entries, want-before)
		}
	}
}
