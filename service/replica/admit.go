package replica

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/service/agreement"
	"github.com/conclave-io/conclave/service/registry"
)

// Met tells that a peer introduced itself with the UID of its data directory.
func (r *Replica) Met(peer, uid uint64) { r.met[peer] = uid }

// admit puts the identities of members on record, and takes back a member that
// lost its data. It takes one step at a time and goes on when that is applied:
//
//	member, not on record          record it
//	member, another UID on record  remove it: the votes and entries that the
//	                               old one promised to keep are gone
//	removed, another UID on record record the new one
//	removed, on record             add it as a learner, which has no vote
//	learner, caught up             make it a voter
func (r *Replica) admit() {
	if r.idle++; r.changing || r.idle < r.cfg.HeartbeatTicks {
		return
	}
	r.idle = 0
	status := r.core.Status()
	for _, peer := range slices.Sorted(maps.Keys(r.met)) {
		if r.admitPeer(&status, peer, r.met[peer]) {
			return
		}
	}
}

// admitPeer takes the next step for one peer and reports whether there is one.
func (r *Replica) admitPeer(status *agreement.Status, peer, uid uint64) bool {
	voter := slices.Contains(status.Voters, peer)
	learner := slices.Contains(status.Learners, peer)
	known, recorded := r.reg.Member(peer)
	same := recorded && known.UID == uid
	switch {
	case (voter || learner) && recorded && !same:
		return r.change(raftpb.ConfChangeRemoveNode, peer)
	case (voter || learner) && !recorded, recorded && !same:
		return r.record(peer, uid)
	case !voter && !learner && same:
		return r.change(raftpb.ConfChangeAddLearnerNode, peer)
	case learner && caughtUp(status, peer):
		return r.change(raftpb.ConfChangeAddNode, peer)
	}
	return false
}

func (r *Replica) record(peer, uid uint64) bool {
	r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpMember, Member: registry.Member{ID: peer, UID: uid}})
	r.changing = true
	return true
}

func (r *Replica) change(kind raftpb.ConfChangeType, peer uint64) bool {
	change := &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: &peer}
	r.changing = r.core.ProposeChange(nil, change) == nil
	return r.changing
}

// caughtUp reports whether a learner has all that is committed, or nearly.
func caughtUp(status *agreement.Status, learner uint64) bool {
	const near = 100 // entries
	for _, p := range status.Peers {
		if p.ID == learner {
			return p.Active && p.Match > 0 && p.Match+near >= status.Commit
		}
	}
	return false
}
