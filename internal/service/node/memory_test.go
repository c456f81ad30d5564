package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/conclave-io/conclave/internal/service/registry"
)

// A server in memory shortens its log again and again: each snapshot begins only after the one
// before is stored.
func TestSnapshotsInMemory(t *testing.T) {
	c := newCluster(t, 1, func(cfg *Config) {
		cfg.Memory, cfg.Dir, cfg.Limits.SnapshotBytes = true, "", 1000
	})
	n := c.leader()
	client := newRecorder()
	conn, err := n.Connect(c.ctx, client)
	if err != nil {
		t.Fatal(err)
	}
	for i := byte(1); n.Metrics().Snapshots.Load() < 3; i++ {
		open := registry.Command{Op: registry.OpOpen, Session: registry.SessionID{i}, Sequence: 1, TTL: int64(time.Minute)}
		if err := conn.Submit(c.ctx, []registry.Command{open}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-client.replies:
		case <-c.ctx.Done():
			t.Fatalf("%d snapshots", n.Metrics().Snapshots.Load())
		}
	}
	if syncs := n.Metrics().Fsyncs.Load(); syncs != 0 {
		t.Errorf("a server without a disk counts %d fsyncs", syncs)
	}
}

// A write that only changes the commit index needs no fsync, and is not counted as one.
func TestFsyncsAreCounted(t *testing.T) {
	const entries = 50
	c := newCluster(t, 3)
	c.ok(open(1))
	leader := c.leader()
	applied, before := leader.Metrics().Applied.Load(), leader.Metrics().Fsyncs.Load()
	for n := range uint64(entries) {
		c.ok(acquire(2+n, fmt.Sprint("name-", n)))
	}
	syncs := leader.Metrics().Fsyncs.Load() - before
	if logged := leader.Metrics().Applied.Load() - applied; syncs < 1 || syncs > logged+entries/2 {
		t.Errorf("%d fsyncs for %d entries", syncs, logged)
	}
}
