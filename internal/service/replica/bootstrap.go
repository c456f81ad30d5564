package replica

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
)

// BootstrapFrom returns the snapshot from which every member starts that founds a cluster with
// an existing state. Its index and term must be above those of Bootstrap.
func BootstrapFrom(voters []uint64, index, term uint64, state []byte) *raftpb.Snapshot {
	snapshot := agreement.Bootstrap(voters, state)
	snapshot.Metadata.Index, snapshot.Metadata.Term = &index, &term
	return snapshot
}
