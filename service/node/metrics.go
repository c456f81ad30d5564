package node

import (
	"sync/atomic"

	"github.com/conclave-io/conclave/internal/histogram"
	"github.com/conclave-io/conclave/service/replica"
)

// Metrics are the figures of a node. They may be read at any time, however busy the
// node is. They only grow, but for Leader, LeaderSince and Stats.
type Metrics struct {
	// Requests and Replies count what clients sent and were answered.
	Requests, Replies atomic.Uint64
	// Exhausted counts the replies which say that a bounded queue is full.
	Exhausted atomic.Uint64
	// Fsyncs counts the writes to disk; requests per fsync is the gain of
	// sharing them.
	Fsyncs atomic.Uint64
	// Snapshots counts those made here.
	Snapshots atomic.Uint64
	// Applied is the index of the newest log entry applied.
	Applied atomic.Uint64
	// Leader is the id of the leader, or 0.
	Leader atomic.Uint64
	// LeaderChanges counts how often Leader changed.
	LeaderChanges atomic.Uint64
	// LeaderSince is when Leader changed last, or the node started: ns since 1970.
	LeaderSince atomic.Int64

	stats atomic.Pointer[replica.Stats]
	times atomic.Pointer[Times]
}

// Times are figures of a node that are renewed with each tick.
type Times struct {
	replica.Deeds
	// Lags are those of the other servers, if this one leads.
	Lags []replica.Lag
	// Fsyncs are how long the writes of Metrics.Fsyncs took, and Snapshots those of the
	// files of snapshots.
	Fsyncs, Snapshots histogram.Durations
}

// Times returns them as they were at the last tick.
func (m *Metrics) Times() Times {
	if times := m.times.Load(); times != nil {
		return *times
	}
	return Times{}
}

// Stats returns the figures of the replica after its newest output. They are those
// of an empty one until the node knows what it is.
func (m *Metrics) Stats() replica.Stats {
	if stats := m.stats.Load(); stats != nil {
		return *stats
	}
	return replica.Stats{}
}
