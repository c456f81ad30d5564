package node

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/backup"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// foundingState returns the state from which this server founds its cluster, after it is on
// disk: nothing, or the state of a backup that was placed in the data directory.
func (n *Node) foundingState() (*raftpb.Snapshot, error) {
	founders := slices.Sorted(maps.Keys(n.cfg.Peers))
	snapshot := replica.Bootstrap(founders)
	seed, err := n.store.Seed()
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	if seed == nil {
		return snapshot, n.store.Save(nil, nil, snapshot, true)
	}
	restored, err := backup.Decode(seed)
	if err != nil {
		return nil, fmt.Errorf("restoring the backup: %w", err)
	}
	n.log.Info("founding the cluster from a backup", "backup_time", time.Unix(0, restored.Time).UTC(), "epoch", restored.Registry.Epoch())
	snapshot = replica.BootstrapFrom(founders, restored.Index, restored.Term, restored.Registry.Encode())
	if err := n.store.Save(nil, nil, snapshot, true); err != nil {
		return nil, err
	}
	if err := n.store.DropSeed(); err != nil {
		n.log.Warn("cannot remove the backup that the cluster was founded from; it is no longer needed", "err", err)
	}
	return snapshot, nil
}
