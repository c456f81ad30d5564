package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/guarded/home"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/store"
	"github.com/conclave-io/conclave/internal/service/transport"
)

// Config sets up a node.
type Config struct {
	// ID is the id of this server, from 1 up.
	ID uint64
	// Cluster identifies the cluster: the same number on all its servers, and different
	// from that of every other cluster.
	Cluster uint64
	// Peers are the peer addresses of the servers, this one included. For a founder
	// they are all founders. Servers that join or move later are found in the log.
	Peers map[uint64]string
	// Joined means that this server joined an existing cluster. UID is the number that
	// identified its request to join.
	Joined bool
	UID    uint64
	// Dir is the data directory.
	Dir string
	// Memory keeps nothing on disk, and Dir is empty: the state ends with the node. Only
	// the single node of a cluster may use it, because other servers would rely on state
	// that it forgets.
	Memory bool
	// PeerListener accepts the connections of the other servers. Start closes it if it
	// fails; otherwise Stop closes it.
	PeerListener net.Listener
	// PeerServerTLS and PeerClientTLS secure the traffic between servers, like the fields
	// of transport.Config. With nil the traffic is not encrypted.
	PeerServerTLS *tls.Config
	PeerClientTLS func() *tls.Config
	// PeerRoster, if not nil, gets all connections between servers that have TLS.
	PeerRoster *transport.Roster
	// Calls, if not nil, receives the connections over which other servers call this one.
	// They arrive at PeerListener too.
	Calls chan<- net.Conn
	// ClientAddress is where clients reach this server ("host:port").
	ClientAddress string
	// Heartbeat is the time between two heartbeats of the leader [50 ms].
	Heartbeat time.Duration
	// Election is the election timeout: how long a follower waits without a heartbeat
	// before it stands for election, between this value and twice this value [4 heartbeats].
	Election time.Duration
	// ViewLease is how long the seat of this server stays valid after a renewal; with a seat
	// the server takes part in guarding locks by algorithms [6 Election, at least 1.2 s].
	// Servers may use different values.
	ViewLease time.Duration
	// Build names this build to the other servers; it is cut to 64 bytes.
	Build string
	// StateLimit is the largest size of the state, in bytes: see replica.Config [512 MiB].
	StateLimit int
	// Audits, if not nil, gets the grants and ends of the holds for which it was made. It must not
	// block.
	Audits Audits
	// Log receives what happens [slog.Default()].
	Log *slog.Logger

	// Limits configures the replica, for tests; zero values mean the defaults.
	Limits replica.Config

	// parting is how long a stopping node waits for a write to end [5 s]. A write that
	// hangs does not end; the node then stops without waiting for it.
	parting time.Duration
	// wrap replaces what keeps the state, a seam for tests.
	wrap func(keeper) keeper
	// wall reads the wall clock, in ns since 1970; a seam for tests.
	wall func() int64
	// founded is called after each founding step that is on disk; an error stops the
	// node. It is a seam for tests.
	founded func(founding.Step) error
}

// Audits gets the grants and ends of holds of some names. A server that starts reports those
// of the end of its log again.
type Audits interface {
	// Wants reports whether a name is one of them.
	Wants(name string) bool
	// Held gets those of a log entry, or that of a hold that no entry decides.
	Held(registry.Holdings)
	// Skipped reports that the entries up to an index came as a snapshot.
	Skipped(index uint64)
}

// Bounds of StateLimit, in bytes.
const (
	MinStateLimit = 16 << 20
	MaxStateLimit = 768 << 20

	// maxSnapshot is the largest snapshot that servers send each other. It exceeds the limit of
	// the state because some requests are never refused and the size is an estimate.
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
		c.ViewLease = home.LeastLease(c.Election)
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

// Validate checks the configuration.
func (c Config) Validate() error {
	switch {
	case c.ID == 0:
		return errors.New("id: 0: must be at least 1")
	case c.Peers[c.ID] == "":
		return fmt.Errorf("peers: server %d is missing; add the address of this server", c.ID)
	case len(c.Peers) > founding.MaxFounders:
		return fmt.Errorf("peers: %d servers: must be at most %d", len(c.Peers), founding.MaxFounders)
	case c.Memory && len(c.Peers) > 1:
		return errors.New("data directory: missing; only the single server of a cluster can run in memory")
	case c.Dir == "" && !c.Memory:
		return errors.New("data directory: missing")
	case c.PeerListener == nil:
		return errors.New("peer listener: missing")
	case c.Heartbeat < 5*time.Millisecond:
		return fmt.Errorf("heartbeat: %v: must be at least 5ms", c.Heartbeat)
	case c.StateLimit != 0 && (c.StateLimit < MinStateLimit || c.StateLimit > MaxStateLimit):
		return fmt.Errorf("state-limit: %d bytes: must be between %d MiB and %d MiB", c.StateLimit, MinStateLimit>>20, MaxStateLimit>>20)
	case c.Election < 2*c.Heartbeat:
		return fmt.Errorf("election timeout: %v: must be at least twice the heartbeat of %v", c.Election, c.Heartbeat)
	case c.ViewLease < home.LeastLease(c.Election) || c.ViewLease > home.MostLease(c.Election):
		return fmt.Errorf("view lease: %v: must be between %v and %v", c.ViewLease, home.LeastLease(c.Election), home.MostLease(c.Election))
	}
	return nil
}

func (c Config) tick() time.Duration { return c.Heartbeat / heartbeatTicks }

// founder describes this server as a founder, given what its disk holds.
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
	if c.Audits != nil {
		limits.Audits = c.Audits.Wants
	}
	if limits.StateLimit == 0 {
		limits.StateLimit = c.StateLimit
	}
	return limits
}

// Reply is an answer for a client.
type Reply = registry.Outcome

// levels maps raft's log levels. Raft's messages about ordinary elections help only to
// find a fault, so they are logged one level lower.
var levels = map[agreement.Level]slog.Level{
	agreement.LevelDebug: slog.LevelDebug,
	agreement.LevelInfo:  slog.LevelDebug,
	agreement.LevelWarn:  slog.LevelWarn,
	agreement.LevelError: slog.LevelError,
}

func raftLog(log *slog.Logger) func(agreement.Level, string) {
	return func(level agreement.Level, text string) {
		log.Log(context.Background(), levels[level], text, "from", "raft")
	}
}
