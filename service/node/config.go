package node

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
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
	// PeerServerTLS and PeerClientTLS secure the traffic between servers; nil
	// leaves it in the clear.
	PeerServerTLS, PeerClientTLS *tls.Config
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
	// Log receives what happens [slog.Default()].
	Log *slog.Logger

	// Limits of the replica, for tests; zero values are the defaults.
	Limits replica.Config

	// wall reads the wall clock, in ns since 1970; a seam for tests.
	wall func() int64
}

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
	if c.Log == nil {
		c.Log = slog.Default()
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
	case c.Memory && len(c.Peers) > 1:
		return errors.New("a server that has others beside it cannot do without a disk: name a data directory")
	case c.Dir == "" && !c.Memory:
		return errors.New("no data directory is named")
	case c.PeerListener == nil:
		return errors.New("no listener for peers is given")
	case c.Heartbeat < 5*time.Millisecond:
		return fmt.Errorf("the heartbeat is %v: it must be 5 ms or more", c.Heartbeat)
	case c.Election < 2*c.Heartbeat:
		return fmt.Errorf("the election timeout is %v: it must be at least twice the heartbeat of %v", c.Election, c.Heartbeat)
	}
	return nil
}

func (c Config) tick() time.Duration { return c.Heartbeat / heartbeatTicks }

func (c Config) replica() replica.Config {
	limits := c.Limits
	limits.ID = c.ID
	limits.PeerAddress, limits.ClientAddress = c.Peers[c.ID], c.ClientAddress
	limits.Tick = int64(c.tick())
	limits.HeartbeatTicks = heartbeatTicks
	limits.ElectionTicks = int(c.Election / c.tick())
	limits.Log = raftLog(c.Log)
	return limits
}

// Reply is an answer for a client.
type Reply = registry.Outcome
