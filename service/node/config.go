package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/conclave-io/conclave/service/founding"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
	"github.com/conclave-io/conclave/service/store"
)

// Config sets up a node.
type Config struct {
	// ID is the id of this server, from 1 up.
	ID uint64
	// Cluster identifies the cluster: the same number on all its servers, and
	// never that of another.
	Cluster uint64
	// Peers are the addresses at which servers take each other's connections,
	// this one included. Those of a founder are all founders. Others that join
	// later, or move, are found in the log.
	Peers map[uint64]string
	// Joined says that this server joined a cluster that was there before it, and
	// UID is the number under which it asked.
	Joined bool
	UID    uint64
	// Dir is the data directory.
	Dir string
	// Memory keeps nothing on disk, and has no Dir: the state ends with the node.
	// Only a node that is alone in its cluster can do without, since others would
	// go by what it has forgotten.
	Memory bool
	// PeerListener takes the connections of the other servers. Start closes it
	// when it fails, Stop when the node stops.
	PeerListener net.Listener
	// PeerServerTLS and PeerClientTLS secure the traffic between servers, as those of
	// transport.Config; nil leaves it in the clear.
	PeerServerTLS *tls.Config
	PeerClientTLS func() *tls.Config
	// Calls, if not nil, takes over the connections by which other servers call this
	// one. They come to PeerListener as well.
	Calls chan<- net.Conn
	// ClientAddress is where clients reach this server ("host:port").
	ClientAddress string
	// Heartbeat is the time between two heartbeats of the leader [50 ms].
	Heartbeat time.Duration
	// Election is how long a follower waits in vain for a heartbeat before it
	// stands for election: this long to twice as long [4 heartbeats].
	Election time.Duration
	// ViewLease is how long the seat by which this server guards locks by algorithms lasts
	// after a renewal [6 Election, at least 1.2 s]. Servers may differ.
	ViewLease time.Duration
	// Build names this build to the other servers; more than 64 bytes are cut off.
	Build string
	// StateLimit is how large the state may be, in bytes: see replica.Config
	// [512 MiB].
	StateLimit int
	// Log receives what happens [slog.Default()].
	Log *slog.Logger

	// Limits of the replica, for tests; zero values are the defaults.
	Limits replica.Config

	// parting is how long a node that stops waits for a write to end [5 s]. A disk
	// that hangs does not end it, and the node leaves it behind.
	parting time.Duration
	// wrap replaces what keeps the state, a seam for tests.
	wrap func(keeper) keeper
	// wall reads the wall clock, in ns since 1970; a seam for tests.
	wall func() int64
	// founded is called after each step of the founding that is on disk, and stops
	// the node by an error; a seam for tests.
	founded func(founding.Step) error
}

// Bounds of StateLimit, in bytes.
const (
	MinStateLimit = 16 << 20
	MaxStateLimit = 768 << 20

	// maxSnapshot is the largest that servers send each other. The state may exceed
	// its limit by what is always taken, and its size is an estimate.
	maxSnapshot = MaxStateLimit / 3 * 4
)

const (
	defaultHeartbeat = 50 * time.Millisecond
	heartbeatTicks   = 5
)

// WithDefaults fills in the zero values.
func (c Config) WithDefaults() Config {
	if c.Heartbeat == 0 {
		c.Heartbeat = defaultHeartbeat
	}
	if c.Election == 0 {
		c.Election = 4 * c.Heartbeat
	}
	if c.ViewLease == 0 {
		c.ViewLease = LeastViewLease(c.Election)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.parting == 0 {
		c.parting = 5 * time.Second
	}
	if c.founded == nil {
		c.founded = func(founding.Step) error { return nil }
	}
	if c.wall == nil {
		c.wall = func() int64 { return time.Now().UnixNano() }
	}
	return c
}

// Validate reports what is wrong with a configuration.
func (c Config) Validate() error {
	switch {
	case c.ID == 0:
		return errors.New("the id of a server is 0: it must be 1 or more")
	case c.Peers[c.ID] == "":
		return fmt.Errorf("server %d is not among the peers: name its own address there too", c.ID)
	case len(c.Peers) > founding.MaxFounders:
		return fmt.Errorf("peers: %d servers: must be at most %d", len(c.Peers), founding.MaxFounders)
	case c.Memory && len(c.Peers) > 1:
		return errors.New("a server that has others beside it cannot do without a disk: name a data directory")
	case c.Dir == "" && !c.Memory:
		return errors.New("no data directory is named")
	case c.PeerListener == nil:
		return errors.New("no listener for peers is given")
	case c.Heartbeat < 5*time.Millisecond:
		return fmt.Errorf("the heartbeat is %v: it must be 5 ms or more", c.Heartbeat)
	case c.StateLimit != 0 && (c.StateLimit < MinStateLimit || c.StateLimit > MaxStateLimit):
		return fmt.Errorf("state-limit: %d bytes: must be between %d MiB and %d MiB", c.StateLimit, MinStateLimit>>20, MaxStateLimit>>20)
	case c.Election < 2*c.Heartbeat:
		return fmt.Errorf("the election timeout is %v: it must be at least twice the heartbeat of %v", c.Election, c.Heartbeat)
	case c.ViewLease < LeastViewLease(c.Election) || c.ViewLease > MostViewLease(c.Election):
		return fmt.Errorf("view lease: %v: must be between %v and %v", c.ViewLease, LeastViewLease(c.Election), MostViewLease(c.Election))
	}
	return nil
}

func (c Config) tick() time.Duration { return c.Heartbeat / heartbeatTicks }

// founder is this server as one of the founders, given what its disk holds.
func (c Config) founder(found *store.State) founding.Server {
	return founding.Server{
		ID: c.ID, UID: found.UID, Founders: slices.Sorted(maps.Keys(c.Peers)),
		Restored: found.Seeded, Record: found.Record,
	}
}

func (c Config) replica() replica.Config {
	limits := c.Limits
	limits.ID = c.ID
	limits.PeerAddress, limits.ClientAddress = c.Peers[c.ID], c.ClientAddress
	limits.Tick = int64(c.tick())
	limits.HeartbeatTicks = heartbeatTicks
	limits.ElectionTicks = int(c.Election / c.tick())
	limits.Stagger = true
	limits.Log = raftLog(c.Log)
	if limits.StateLimit == 0 {
		limits.StateLimit = c.StateLimit
	}
	return limits
}

// Reply is an answer for a client.
type Reply = registry.Outcome
