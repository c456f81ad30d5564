// Package servertest runs clusters of servers inside one test, over real
// sockets and with data on disk.
package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
)

// timeout is the timeout for everything, long enough for a machine that runs other tests
// too.
const timeout = time.Minute

// Cluster is a cluster of servers in this process. Its methods end the test if they fail.
type Cluster struct {
	t       testing.TB
	dir     string
	peers   string
	delay   time.Duration  // between servers
	distant []*farListener // with a delay
	adjust  []func(*config.Server)

	clients, others []string // addresses by server, from index 0
	founders        int

	mu      sync.Mutex
	running []*server.Server // nil where a server is down
}

// Start starts n servers and waits until all know a leader. They stop when the test ends.
// Each adjust may change the configuration of every server.
func Start(t testing.TB, n int, adjust ...func(*config.Server)) *Cluster {
	t.Helper()
	return start(t, n, 0, adjust)
}

func start(t testing.TB, n int, delay time.Duration, adjust []func(*config.Server)) *Cluster {
	t.Helper()
	c := &Cluster{t: t, dir: t.TempDir(), delay: delay, adjust: adjust, running: make([]*server.Server, n), founders: n}
	var listeners []net.Listener
	var peers []string
	for id := 1; id <= n; id++ {
		client, other := listenSomewhere(t), listenSomewhere(t)
		listeners = append(listeners, client, other)
		c.clients = append(c.clients, client.Addr().String())
		c.others = append(c.others, other.Addr().String())
		peers = append(peers, fmt.Sprintf("%d=%s", id, other.Addr()))
	}
	c.peers = strings.Join(peers, ",")
	t.Cleanup(c.stopAll)
	for id := 1; id <= n; id++ {
		c.start(id, listeners[2*id-2], listeners[2*id-1])
	}
	c.Leader()
	return c
}

// ports counts the ports that were tried: none twice in one process, because another test may have
// stopped the server that had it.
var ports atomic.Uint32

// listenSomewhere listens on a port below the range that systems use for outgoing
// connections, so that the port is still free when a server restarts. Processes that run at the same
// time begin at different ports.
func listenSomewhere(t testing.TB) net.Listener {
	t.Helper()
	const first, count, block = 12000, 8000, 1000
	var err error
	for range count {
		var l net.Listener
		port := first + (os.Getpid()*block+int(ports.Add(1)))%count
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l
		}
	}
	t.Fatalf("no free port: %v", err)
	return nil
}

// Config returns the configuration of a server.
func (c *Cluster) Config(id int) config.Server {
	cfg := config.Server{
		ID: uint64(id), ClusterName: c.t.Name(), Data: filepath.Join(c.dir, fmt.Sprint("server-", id)),
		Listen: c.clients[id-1], PeerListen: c.others[id-1], Peers: c.peers,
		// Longer than the default, since many tests may share the machine.
		Election: 400 * time.Millisecond,
		Version:  "test",
		Log:      slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("server", id),
	}
	if id > c.founders {
		cfg.ID, cfg.Peers, cfg.Join = 0, "", strings.Join(c.clients[:id-1], ",")
	}
	for _, adjust := range c.adjust {
		adjust(&cfg)
	}
	return cfg
}

// Exposed makes the servers listen for clients on an address that other machines can reach.
func Exposed(cfg *config.Server) {
	_, port, _ := net.SplitHostPort(cfg.Listen)
	cfg.Advertise, cfg.Listen, cfg.Insecure = cfg.Listen, "0.0.0.0:"+port, true
}

// Join starts one more server, which joins the cluster through any of the servers so far, and
// returns its id. Each adjust may change its configuration.
func (c *Cluster) Join(adjust ...func(*config.Server)) int {
	c.t.Helper()
	client, other := listenSomewhere(c.t), listenSomewhere(c.t)
	c.mu.Lock()
	c.clients = append(c.clients, client.Addr().String())
	c.others = append(c.others, other.Addr().String())
	c.running = append(c.running, nil)
	id := len(c.clients)
	c.mu.Unlock()
	cfg := c.Config(id)
	for _, adjust := range adjust {
		adjust(&cfg)
	}
	cfg.Listener, cfg.PeerListener = client, other
	s, err := server.Start(cfg)
	if err != nil {
		c.t.Fatalf("server %d does not join: %v", id, err)
	}
	if got := s.Config().ID; got != uint64(id) {
		c.t.Fatalf("the server that should be %d is %d", id, got)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id-1] = s
	return id
}

// Gone waits until a server has stopped by itself, and returns why it did.
func (c *Cluster) Gone(id int) error {
	c.t.Helper()
	s := c.Server(id)
	select {
	case <-s.Done():
	case <-time.After(timeout):
		c.t.Fatalf("server %d does not stop by itself", id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id-1] = nil
	return s.Err()
}

func (c *Cluster) start(id int, client, other net.Listener) {
	c.t.Helper()
	cfg := c.Config(id)
	if c.delay > 0 {
		other = c.far(other)
	}
	cfg.Listener, cfg.PeerListener = client, other
	if cfg.Listen != c.clients[id-1] { // the server opens it itself
		client.Close()
		cfg.Listener = nil
	}
	s, err := server.Start(cfg)
	if err != nil {
		c.t.Fatalf("server %d does not start: %v", id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id-1] = s
}

// Server returns a server, or nil if it is down.
func (c *Cluster) Server(id int) *server.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[id-1]
}

// Servers returns how many servers the cluster has, running or not.
func (c *Cluster) Servers() int { return len(c.clients) }

// Address returns the client address of a server.
func (c *Cluster) Address(id int) string { return c.clients[id-1] }

// Addresses returns the client addresses of all servers.
func (c *Cluster) Addresses() []string { return c.clients }

// Leader waits until all running servers know the same leader, one of them, and
// returns its id.
func (c *Cluster) Leader() (leader int) {
	c.t.Helper()
	Eventually(c.t, "all servers know one leader", func() bool {
		leader = c.agreed()
		return leader != 0
	})
	return leader
}

func (c *Cluster) agreed() int {
	var leader uint64
	for id := 1; id <= len(c.clients); id++ {
		s := c.Server(id)
		if s == nil {
			continue
		}
		named := s.Leader()
		if named == 0 || leader != 0 && named != leader {
			return 0
		}
		leader = named
	}
	if leader == 0 || c.Server(int(leader)) == nil {
		return 0
	}
	return int(leader)
}

// Follower returns the id of a running server that does not lead.
func (c *Cluster) Follower() int {
	c.t.Helper()
	leader := c.Leader()
	for id := 1; id <= len(c.clients); id++ {
		if id != leader && c.Server(id) != nil {
			return id
		}
	}
	c.t.Fatal("there is no follower")
	return 0
}

// Stop stops a server, which hands over leadership if it has it.
func (c *Cluster) Stop(id int) {
	c.t.Helper()
	if err := c.stop(id); err != nil {
		c.t.Fatalf("server %d: %v", id, err)
	}
}

func (c *Cluster) stop(id int) error {
	s := c.Server(id)
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	err := s.Stop(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[id-1] = nil
	return err
}

func (c *Cluster) stopAll() {
	// All at the same time: the last leader would wait for a successor.
	var ending sync.WaitGroup
	for id := 1; id <= len(c.clients); id++ {
		ending.Go(func() {
			if err := c.stop(id); err != nil {
				c.t.Errorf("server %d: %v", id, err)
			}
		})
	}
	ending.Wait()
}

// Restart starts a stopped server on its old addresses and data.
func (c *Cluster) Restart(id int) {
	c.t.Helper()
	client, err := net.Listen("tcp", c.clients[id-1])
	if err != nil {
		c.t.Fatal(err)
	}
	other, err := net.Listen("tcp", c.others[id-1])
	if err != nil {
		client.Close()
		c.t.Fatal(err)
	}
	c.start(id, client, other)
}

// Eventually waits until a condition holds, and ends the test if that takes too long.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeout); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v it is still not so that %s", timeout, what)
		}
	}
}
