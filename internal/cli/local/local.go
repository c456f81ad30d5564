// Package local runs a cluster of server processes on this machine: real
// processes with data on disk, which can be killed and started again. The demo,
// the benchmark and the end-to-end tests stand on it.
package local

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Config says what to run. Binary and Dir must be set.
type Config struct {
	// Binary is the conclave binary.
	Binary string
	// Dir takes the data of the servers and what they print.
	Dir string
	// Servers is how many there are [3].
	Servers int
	// Flags are passed to every server, in addition to its own.
	Flags []string
	// Hosts, if given, are the addresses at which the servers run, one for each:
	// those of network namespaces, say [127.0.0.1 for all].
	Hosts []string
	// Via, if given, returns the command that runs the binary at the place of a
	// server. Signals reach what it turns itself into.
	Via func(id int) []string
}

// Cluster is a running cluster.
type Cluster struct {
	cfg  Config
	name string

	mu      sync.Mutex
	clients []string // addresses by server, from index 0
	peers   []string

	Group
}

// Start starts all servers. They need a moment more to elect a leader.
func Start(cfg Config) (*Cluster, error) {
	if len(cfg.Hosts) > 0 {
		cfg.Servers = len(cfg.Hosts)
	}
	if cfg.Servers == 0 {
		cfg.Servers = 3
	}
	c := &Cluster{cfg: cfg, name: fmt.Sprintf("local-%d", os.Getpid())}
	ports, err := cfg.ports()
	if err != nil {
		return nil, err
	}
	for i := range cfg.Servers {
		c.clients = append(c.clients, ports[2*i])
		c.peers = append(c.peers, ports[2*i+1])
	}
	for id := 1; id <= cfg.Servers; id++ {
		if err := c.Restart(id); err != nil {
			c.Stop()
			return nil, err
		}
	}
	return c, nil
}

// ports returns two addresses for each server. A host of its own has all ports
// free.
func (cfg Config) ports() ([]string, error) {
	if len(cfg.Hosts) == 0 {
		return freePorts(2 * cfg.Servers)
	}
	var addresses []string
	for _, host := range cfg.Hosts {
		addresses = append(addresses, net.JoinHostPort(host, "7400"), net.JoinHostPort(host, "7500"))
	}
	return addresses, nil
}

// ports hands out ports, none of them twice in one process.
var ports struct {
	mu        sync.Mutex
	next, end int
	// claims are the listeners that keep other processes from the blocks of this one.
	claims []net.Listener
}

// They lie below the range from which systems take ports for outgoing connections, so that a
// server finds its own free when it comes back.
const firstPort, portBlock, portBlocks = 20000, 64, 187

// freePorts returns addresses that nobody listens on, and that no other process gets from here
// until this one ends, also while the server at an address is down.
func freePorts(n int) ([]string, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	var addresses []string
	for len(addresses) < n {
		if ports.next == ports.end {
			if err := claimPorts(); err != nil {
				return nil, err
			}
		}
		if l, err := listenLocally(ports.next); err == nil {
			addresses = append(addresses, l.Addr().String())
			l.Close()
		}
		ports.next++
	}
	return addresses, nil
}

// claimPorts makes the next block of ports that no process has claimed the one of this process. Who
// listens on the first port of a block has it.
func claimPorts() error {
	for i := range portBlocks {
		first := firstPort + (os.Getpid()+i)%portBlocks*portBlock
		if l, err := listenLocally(first); err == nil {
			ports.claims = append(ports.claims, l)
			ports.next, ports.end = first+1, first+portBlock
			return nil
		}
	}
	return fmt.Errorf("all ports among %d to %d are in use", firstPort, firstPort+portBlocks*portBlock)
}

func listenLocally(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// Servers returns how many servers the cluster has had.
func (c *Cluster) Servers() int { return len(c.Addresses()) }

// Addresses returns where the servers take clients, by id from 1 up.
func (c *Cluster) Addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.clients)
}

// Dir returns the data directory of a server.
func (c *Cluster) Dir(id int) string { return filepath.Join(c.cfg.Dir, fmt.Sprint("server-", id)) }

// LogFile returns where a server's output is appended.
func (c *Cluster) LogFile(id int) string { return c.Dir(id) + ".log" }

// Peers returns the addresses at which the founders take each other, in the form
// that --peers takes.
func (c *Cluster) Peers() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.founders()
}

// founders is Peers; mu is held.
func (c *Cluster) founders() string {
	var peers []string
	for i, address := range c.peers[:c.cfg.Servers] {
		peers = append(peers, fmt.Sprintf("%d=%s", i+1, address))
	}
	return strings.Join(peers, ",")
}

// Command returns the arguments of the binary that make it the given server. Later flags
// replace earlier ones.
func (c *Cluster) Command(id int, flags ...string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	args := []string{"serve", "--data", c.Dir(id), "--listen", c.clients[id-1], "--peer-listen", c.peers[id-1]}
	if id > c.cfg.Servers {
		args = append(args, "--join", strings.Join(c.clients[:id-1], ","))
	} else {
		args = append(args, "--id", strconv.Itoa(id), "--cluster-name", c.name, "--peers", c.founders())
	}
	return slices.Concat(args, c.cfg.Flags, flags)
}

// Join starts one more server, which joins the cluster, and returns the id that it
// will get if no other joins at the same time.
func (c *Cluster) Join() (int, error) {
	ports, err := freePorts(2)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	c.clients, c.peers = append(c.clients, ports[0]), append(c.peers, ports[1])
	id := len(c.clients)
	c.mu.Unlock()
	return id, c.Restart(id)
}

// Restart starts a server that is down.
func (c *Cluster) Restart(id int) error {
	words := append([]string{c.cfg.Binary}, c.Command(id)...)
	if c.cfg.Via != nil {
		words = append(c.cfg.Via(id), words...)
	}
	return c.Run(id, c.LogFile(id), exec.Command(words[0], words[1:]...))
}
