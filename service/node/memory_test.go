package node

import (
	"testing"
	"time"

	"github.com/conclave-io/conclave/service/registry"
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
}
