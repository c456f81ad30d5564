package agreement

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

var (
	// ErrNotLeader means that only a leader can do this. Status names the leader,
	// if it is known.
	ErrNotLeader = errors.New("agreement: this member is not the leader")
	// ErrBusy means that a bound of Config is reached; the caller may try
	// again when earlier work has been committed.
	ErrBusy = errors.New("agreement: too much is waiting to be agreed; try again later")
	// ErrTransferring means that the leader is handing over and takes no
	// proposals meanwhile; it does so for at most one election timeout.
	ErrTransferring = errors.New("agreement: the leader is handing over; try again later")
	// ErrChangePending means that an earlier change of the configuration is
	// not applied yet.
	ErrChangePending = errors.New("agreement: another configuration change is not applied yet; try again later")
	// ErrSnapshotPending means that a snapshot from the leader is being saved,
	// and that the log may not be snapshotted or compacted meanwhile.
	ErrSnapshotPending = errors.New("agreement: a snapshot from the leader is being installed; try again later")
	// ErrSnapshotOld means that the configuration has changed since the state for the
	// snapshot was taken.
	ErrSnapshotOld = errors.New("agreement: the configuration has changed since this state; take a newer one")
	// ErrEmpty refuses a proposal without data, which would look like one of
	// raft's own entries.
	ErrEmpty = errors.New("agreement: a proposal must carry data")
)

// MessageError refuses a message that no correct peer sends.
type MessageError struct {
	Type   raftpb.MessageType
	From   uint64
	Reason string
}

func (e *MessageError) Error() string {
	return fmt.Sprintf("agreement: %v from member %d refused: %s", e.Type, e.From, e.Reason)
}

// LostLogError means that the leader knows this member to have acknowledged
// entries that it does not have: its data directory was emptied or rolled
// back. A blank member gets this error until it has been added again as a learner;
// any other member must stop.
type LostLogError struct {
	Leader uint64
	// Peer, if not 0, is a member that has an entry which this one, as the leader, lacks.
	Peer   uint64
	Commit uint64 // what this member once acknowledged
	Last   uint64 // where its log ends
}

func (e *LostLogError) Error() string {
	if e.Peer != 0 {
		return fmt.Sprintf("agreement: member %d holds entry %d, but the log of this leader ends at %d: its data was lost, set back to an older state, or begun apart from that of the others; find out which servers have the newest data, move the data directories of all others away and start these empty",
			e.Peer, e.Commit, e.Last)
	}
	return fmt.Sprintf("agreement: leader %d knows this member to hold entry %d, but its log ends at %d: its data was lost or set back to an older state; move its data directory away and start it again, and it comes back as an empty member",
		e.Leader, e.Commit, e.Last)
}
