package node

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

func TestMain(m *testing.M) {
	// The tests wait for elections and leases most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// testTimeout is how long a test waits for what must happen soon.
const testTimeout = time.Minute

// cluster is some nodes in this process, with disks and sockets.
type cluster struct {
	t      *testing.T
	ctx    context.Context
	dir    string
	peers  map[uint64]string
	nodes  map[uint64]*Node
	gates  map[uint64]*gate
	limits replica.Config
	adjust []func(*Config)
}

func newCluster(t *testing.T, n int, adjust ...func(*Config)) *cluster {
	c, listeners := reserveCluster(t, n, adjust...)
	for id, l := range listeners {
		c.startOn(id, l)
	}
	return c
}

// reserveCluster returns a cluster without running servers.
func reserveCluster(t *testing.T, n int, adjust ...func(*Config)) (*cluster, map[uint64]net.Listener) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := &cluster{t: t, ctx: ctx, adjust: adjust, dir: t.TempDir(), peers: make(map[uint64]string), nodes: make(map[uint64]*Node), gates: make(map[uint64]*gate)}
	listeners := make(map[uint64]net.Listener)
	for id := uint64(1); id <= uint64(n); id++ {
		l := listen(t)
		listeners[id] = l
		c.peers[id] = l.Addr().String()
	}
	t.Cleanup(func() {
		for id := range c.nodes {
			c.stop(id)
		}
	})
	return c, listeners
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *cluster) config(id uint64, l net.Listener) Config {
	cfg := Config{
		ID: id, Cluster: 7, Peers: c.peers, Dir: filepath.Join(c.dir, fmt.Sprint(id)), PeerListener: l,
		ClientAddress: fmt.Sprint("client-", id), Log: slog.New(slog.DiscardHandler), Limits: c.limits,
		wrap: func(k keeper) keeper {
			c.gates[id] = &gate{keeper: k}
			return c.gates[id]
		},
	}
	for _, adjust := range c.adjust {
		adjust(&cfg)
	}
	return cfg
}

func (c *cluster) startOn(id uint64, l net.Listener) *Node {
	c.t.Helper()
	n, err := Start(c.config(id, l))
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[id] = n
	return n
}

func (c *cluster) start(id uint64) *Node {
	c.t.Helper()
	l, err := net.Listen("tcp", c.peers[id])
	if err != nil {
		c.t.Fatal(err)
	}
	return c.startOn(id, l)
}

func (c *cluster) stop(id uint64) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := c.nodes[id].Stop(ctx); err != nil {
		c.t.Errorf("node %d: %v", id, err)
	}
	delete(c.nodes, id)
}

// until asks again and again until the answer is yes.
func (c *cluster) until(what string, yes func() bool) {
	c.t.Helper()
	deadline := time.After(testTimeout)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !yes() {
		select {
		case <-tick.C:
		case <-deadline:
			c.t.Fatalf("after %v still not: %s", testTimeout, what)
		}
	}
}

// leader waits until a node leads.
func (c *cluster) leader() (found *Node) {
	c.t.Helper()
	c.until("a node leads", func() bool {
		for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
			n := c.nodes[id]
			_ = n.View(c.ctx, func(r *replica.Replica) {
				if r.Leading() {
					found = n
				}
			})
		}
		return found != nil
	})
	return found
}

// submit gives a node a command and waits for no answer.
func (c *cluster) submit(n *Node, command registry.Command) {
	c.t.Helper()
	conn, err := n.Connect(c.ctx, newRecorder())
	if err == nil {
		err = conn.Submit(c.ctx, []registry.Command{command})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// recorder is a client that keeps what it is told.
type recorder struct {
	replies chan Reply
	deposed chan struct{}
}

func newRecorder() *recorder {
	return &recorder{replies: make(chan Reply, 1024), deposed: make(chan struct{})}
}

func (r *recorder) Deliver(replies []Reply) {
	for _, reply := range replies {
		r.replies <- reply
	}
}

func (r *recorder) Depose() { close(r.deposed) }

// do carries out one command at whoever leads, as long as it takes.
func (c *cluster) do(command registry.Command) registry.Result {
	c.t.Helper()
	deadline := time.Now().Add(testTimeout)
	for time.Now().Before(deadline) {
		client := newRecorder()
		conn, err := c.leader().Connect(c.ctx, client)
		if err != nil {
			continue
		}
		if err := conn.Submit(c.ctx, []registry.Command{command}); err != nil {
			continue
		}
		select {
		case reply := <-client.replies:
			conn.Close()
			return reply.Result
		case <-client.deposed:
		case <-time.After(testTimeout):
			c.t.Fatalf("no answer to %+v", command)
		}
	}
	c.t.Fatalf("no leader carried out %+v", command)
	return registry.Result{}
}

func (c *cluster) ok(command registry.Command) registry.Result {
	c.t.Helper()
	result := c.do(command)
	if result.Code != registry.OK {
		c.t.Fatalf("code %d: %s", result.Code, result.Message)
	}
	return result
}

var owner = registry.SessionID{1}

func open(sequence uint64) registry.Command {
	return registry.Command{Op: registry.OpOpen, Session: owner, Sequence: sequence, TTL: int64(time.Minute)}
}

func acquire(sequence uint64, name string) registry.Command {
	return registry.Command{Op: registry.OpAcquire, Session: owner, Sequence: sequence, Name: name}
}

func TestHoldOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	old := c.leader()
	c.stop(old.cfg.ID)
	if again := c.ok(acquire(2, "a")); again.Fence != held.Fence {
		t.Fatalf("the new leader knows the hold with fence %d, it had %d", again.Fence, held.Fence)
	}
	c.start(old.cfg.ID)
	if next := c.ok(acquire(3, "b")); next.Fence <= held.Fence {
		t.Fatalf("fence %d after %d", next.Fence, held.Fence)
	}
}

func TestHoldOutlivesTheWholeCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	for id := range c.peers {
		c.stop(id)
	}
	for id := range c.peers {
		c.start(id)
	}
	if again := c.ok(acquire(2, "a")); again.Fence != held.Fence {
		t.Fatalf("the hold came back with fence %d, it had %d", again.Fence, held.Fence)
	}
}

func TestEmptiedMemberRejoins(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	held := c.ok(acquire(2, "a"))
	leader := c.leader()
	c.until("all members are on record", func() bool {
		known := 0
		_ = leader.View(c.ctx, func(r *replica.Replica) {
			for id := range c.peers {
				if _, ok := r.Registry().Member(id); ok {
					known++
				}
			}
		})
		return known == 3
	})
	victim := leader.cfg.ID%3 + 1
	c.stop(victim)
	if err := os.RemoveAll(filepath.Join(c.dir, fmt.Sprint(victim))); err != nil {
		t.Fatal(err)
	}
	back := c.start(victim)
	c.until("it is a voter and knows the hold", func() bool {
		complete := false
		_ = back.View(c.ctx, func(r *replica.Replica) {
			locks, _ := r.Registry().Freeze().List(registry.Lock, "", "", 1, 0)
			complete = len(locks) == 1 && locks[0].Holders[0].Fence == held.Fence &&
				slices.Contains(r.Status().Voters, victim)
		})
		return complete
	})
}

func TestClientHearsOfTheEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	leader := c.leader()
	client := newRecorder()
	if _, err := leader.Connect(c.ctx, client); err != nil {
		t.Fatal(err)
	}
	c.stop(leader.cfg.ID)
	select {
	case <-client.deposed:
	case <-time.After(testTimeout):
		t.Fatal("the client of a leader that stopped was not told")
	}
}

func TestFollowerTakesNoClients(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	leader := c.leader()
	for _, n := range c.nodes {
		if n == leader {
			continue
		}
		if _, err := n.Connect(c.ctx, newRecorder()); err != ErrNotLeader {
			t.Fatalf("connecting to a follower: %v", err)
		}
		if _, err := n.Read(c.ctx); err != ErrNotLeader {
			t.Fatalf("reading at a follower: %v", err)
		}
		if _, err := n.Watch(c.ctx, registry.Election, "e", false); err != ErrNotLeader {
			t.Fatalf("watching at a follower: %v", err)
		}
	}
	if _, err := leader.Read(c.ctx); err != nil {
		t.Fatal(err)
	}
}

func TestWatchSeesLeadersOfElections(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.ok(open(1))
	watch, err := c.leader().Watch(c.ctx, registry.Election, "boss", false)
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	campaign := acquire(2, "boss")
	campaign.Class, campaign.Value = registry.Election, "me"
	c.ok(campaign)
	select {
	case <-watch.Signal():
	case <-time.After(testTimeout):
		t.Fatal("nobody told of a new leader")
	}
}

// A watch reports the locks under its prefix as long as it is open. Reports may come one by one or
// together.
func TestWatchSeesLocksUnderAPrefix(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.ok(open(1))
	watch, err := c.leader().Watch(c.ctx, registry.Lock, "jobs/", true)
	if err != nil {
		t.Fatal(err)
	}
	c.ok(acquire(2, "other"))
	c.ok(acquire(3, "jobs/b"))
	c.ok(acquire(4, "jobs/a"))
	told(t, watch, "jobs/a", "jobs/b")

	watch.Close()
	other, err := c.leader().Watch(c.ctx, registry.Lock, "jobs/", true)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	c.ok(acquire(5, "jobs/c"))
	told(t, other, "jobs/c")
	if names, _ := watch.Take(); len(names) > 0 {
		t.Errorf("a watch that was closed is told of %v", names)
	}
}

// told waits until a watch has reported these names, and nothing else.
func told(t *testing.T, watch *Watch, want ...string) {
	t.Helper()
	var seen []string
	for len(seen) < len(want) {
		select {
		case <-watch.Signal():
		case <-time.After(testTimeout):
			t.Fatalf("told of %v, want %v", seen, want)
		}
		names, all := watch.Take()
		if all {
			t.Fatal("names are missing")
		}
		seen = append(seen, names...)
	}
	slices.Sort(seen)
	if !slices.Equal(seen, want) {
		t.Fatalf("told of %v, want %v", seen, want)
	}
}

// TestFailedWriteStopsTheNode takes the disk away under a node.
func TestFailedWriteStopsTheNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.ok(open(1))
	n := c.nodes[1]
	delete(c.nodes, 1) // it stops by itself
	conn, err := n.Connect(c.ctx, newRecorder())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Submit(c.ctx, []registry.Command{acquire(2, "a")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-n.Done():
	case <-time.After(testTimeout):
		t.Fatal("a node whose disk fails goes on")
	}
	if n.Err() == nil || strings.Contains(n.Err().Error(), "\n") {
		t.Fatalf("it does not say why in one line: %v", n.Err())
	}
	if err := conn.Submit(c.ctx, []registry.Command{acquire(3, "a")}); err != ErrStopped {
		t.Fatalf("a request to a stopped node: %v", err)
	}
}

// TestOneWrongServerHarmsNobody starts one server of three with the settings of another
// cluster. Only that server must stop, although each side refuses the other.
func TestOneWrongServerHarmsNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.ok(open(1))
	stray := c.leader().cfg.ID%3 + 1
	c.stop(stray)
	l, err := net.Listen("tcp", c.peers[stray])
	if err != nil {
		t.Fatal(err)
	}
	cfg := c.config(stray, l)
	cfg.Cluster, cfg.Dir = 8, t.TempDir()
	wrong, err := Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-wrong.Done():
	case <-time.After(testTimeout):
		t.Fatal("a server of another cluster goes on")
	}
	if err := wrong.Err(); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("it does not say why: %v", err)
	}
	c.ok(acquire(2, "a"))
	for id, n := range c.nodes {
		select {
		case <-n.Done():
			t.Errorf("server %d stopped as well: %v", id, n.Err())
		default:
		}
	}
}

func TestWrongConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	good := Config{ID: 1, Peers: map[uint64]string{1: "127.0.0.1:1"}, Dir: t.TempDir()}
	for what, spoil := range map[string]func(*Config){
		"id":       func(c *Config) { c.ID = 0 },
		"peers":    func(c *Config) { c.Peers = nil },
		"dir":      func(c *Config) { c.Dir = "" },
		"listener": func(c *Config) { c.PeerListener = nil },
		"election": func(c *Config) { c.Election = time.Millisecond },
	} {
		l := listen(t)
		cfg := good
		cfg.PeerListener = l
		spoil(&cfg)
		if _, err := Start(cfg); err == nil {
			t.Errorf("%s: a wrong configuration is accepted", what)
		}
		l.Close()
	}
}
