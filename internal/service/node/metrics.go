package node

import (
	"sync"
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// Metrics are the counters of a node. They may be read at any time, even if the node is
// busy. All of them only grow, except Leader, LeaderSince and Stats.
type Metrics struct {
	// Requests counts the requests of clients, and Replies the replies to them.
	Requests, Replies atomic.Uint64
	// Exhausted counts the replies that report a full queue.
	Exhausted atomic.Uint64
	// Fsyncs counts the fsyncs. Requests per fsync show how well they are shared.
	Fsyncs atomic.Uint64
	// Snapshots counts the snapshots that this server made.
	Snapshots atomic.Uint64
	// Applied is the index of the newest log entry applied.
	Applied atomic.Uint64
	// Leader is the id of the leader, or 0.
	Leader atomic.Uint64
	// LeaderChanges counts how often Leader changed.
	LeaderChanges atomic.Uint64
	// LeaderSince is the time of the last change of Leader, or of the start: ns since 1970.
	LeaderSince atomic.Int64

	mu    sync.Mutex
	stats replica.Stats // a pointer to new ones would be garbage at each output
	times atomic.Pointer[Times]
}

// Times are figures of a node that every tick updates.
type Times struct {
	replica.Deeds
	// Lags are the lags of the other servers, if this one leads.
	Lags []replica.Lag
	// Expected are the rules about names, and Now is the replicated time, as far as this server knows.
	Expected []registry.Expected
	Now      int64
	// Fsyncs are the durations of the writes that Metrics.Fsyncs counts, and Snapshots those of
	// the writes of snapshot files.
	Fsyncs, Snapshots histogram.Durations
}

// Times returns the figures of the last tick.
func (m *Metrics) Times() Times {
	if times := m.times.Load(); times != nil {
		return *times
	}
	return Times{}
}

// Stats returns the figures of the replica after its newest output, or empty ones before
// the replica exists.
func (m *Metrics) Stats() replica.Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}

func (m *Metrics) setStats(stats replica.Stats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats = stats
}

// countSync counts an fsync.
func (n *Node) countSync(w written) {
	if w.synced {
		n.metrics.Fsyncs.Add(1)
		n.times.Fsyncs.Note(int64(w.took))
	}
}
