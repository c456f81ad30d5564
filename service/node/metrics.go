package node

import "sync/atomic"

// Metrics are the figures of a node. They only grow, but for Leader.
type Metrics struct {
	// Requests and Replies count what clients sent and were answered.
	Requests, Replies atomic.Uint64
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
}
