package node

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/conclave-io/conclave/internal/kit/histogram"
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

// Stall is an operation that has not ended within two election timeouts. What a leader
// with a hanging disk does is decided by the replica itself.
type Stall struct {
	What  string        // what has been under way
	Took  time.Duration // until now
	Since time.Time
	Disk  bool // it is a write to the disk, and not the wait for others to store entries
}

func (s Stall) String() string {
	return fmt.Sprintf("%s has been under way for %v (since %s)",
		s.What, s.Took.Round(100*time.Millisecond), s.Since.UTC().Format(time.RFC3339))
}

// Stall returns the operation that has been under way for more than two election timeouts,
// or the zero Stall. It may be called at any time, and waits for neither disk nor replica.
func (n *Node) Stall() Stall {
	limit := 2 * n.cfg.Election
	what, took := n.disk.late(limit)
	disk := took > 0
	if since := n.waits.Load(); !disk && since != 0 && now()-since > int64(limit) {
		what, took = "applying entries of the log", time.Duration(now()-since)
	}
	if took == 0 {
		return Stall{}
	}
	return Stall{what, took, time.Now().Add(-took), disk}
}

// checkStall logs when a stall begins and when it ends. After a gap between two ticks
// this process was suspended, and every operation looks old, so it waits for the next tick.
func (n *Node) checkStall() {
	gap := now() - n.ticked
	n.ticked = now()
	n.waits.Store(0)
	if waiting := n.replica.Waiting(); waiting > 0 {
		n.waits.Store(now() - waiting)
	}
	if gap > int64(n.cfg.Election) {
		return
	}
	switch stall := n.Stall(); {
	case stall.What == n.stall.What:
	case stall.What == "":
		n.log.Info("the stall is over", "what", n.stall.What, "took", time.Since(n.stall.Since))
		n.stall = Stall{}
	default:
		n.log.Warn("stalled: "+stall.String(), "dir", n.cfg.Dir)
		n.stall = stall
	}
}

// leaveDisk waits until the disk has ended its work. If a write hangs, it stops waiting;
// the data directory is then released when the process ends.
func (n *Node) leaveDisk() {
	ended := make(chan struct{})
	go func() {
		n.disk.working.Wait()
		close(ended)
	}()
	timer := time.NewTimer(n.cfg.parting)
	defer timer.Stop()
	select {
	case <-ended:
		return
	case <-timer.C:
	}
	n.stuck = true
	err := fmt.Errorf("data directory %s: a write did not end within %v; the server stopped without waiting for it", n.cfg.Dir, n.cfg.parting)
	n.log.Error("stopping while a write to the disk hangs", "err", err)
	if n.err == nil {
		n.err = err
	}
}
