package replica

import (
	"maps"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/registry"
)

// Met reports that a server introduced itself, with the UID of its data directory,
// its addresses, and the levels that it reads.
func (r *members) Met(server registry.Member, levels Levels) {
	r.met[server.ID], r.levels[server.ID] = server, levels
}

// Founded reports who founded the cluster: a server that has lost the founding record may
// learn it again after its start.
func (r *members) Founded(founders []registry.Member) { r.cfg.Founders = founders }

// admit records what servers say of themselves, and changes the configuration of agreement to
// what the record says. It takes one step at a time and continues when that is applied, so
// that any later leader finds in the record what is left to do:
//
//	founder, not on record         record it as it was at the founding
//	member, not on record          record it, once it has answered as a member
//	member, another UID on record  remove it: the votes and entries that the
//	                               old one promised to keep are gone
//	absent, another UID on record  record the new one
//	absent, on record              add it as a learner, which has no vote
//	learner, meant to vote, which  make it a voter
//	has caught up
//	member, removed on record      remove it; if it leads, hand over first
//	on record at another address   record the new one
func (r *members) admit() {
	if r.idle++; r.changing || r.idle < r.cfg.HeartbeatTicks {
		return
	}
	r.idle = 0
	if r.recordFounder() {
		return
	}
	status := r.core.Status()
	ids := slices.Sorted(maps.Keys(r.met))
	ids = append(ids, status.Voters...)
	ids = append(ids, status.Learners...)
	for _, id := range ids {
		if r.admitPeer(&status, id) {
			return
		}
	}
	r.raise()
}

// recordFounder records a founder that is not recorded yet, before anything else is done: a
// founder that lost its data must not be taken for its former self, even if it is met first.
func (r *members) recordFounder() bool {
	for _, founder := range r.cfg.Founders {
		if _, recorded := r.reg.Member(founder.ID); recorded {
			continue
		}
		if here, met := r.met[founder.ID]; met && here.UID == founder.UID {
			founder = here
		}
		return r.record(founder, registry.Origin{})
	}
	return false
}

// admitPeer takes the next step for one server, and reports whether there was one.
func (r *members) admitPeer(status *agreement.Status, peer uint64) bool {
	voter := slices.Contains(status.Voters, peer)
	learner := slices.Contains(status.Learners, peer)
	known, recorded := r.reg.Member(peer)
	here, met := r.met[peer]
	same := recorded && known.UID == here.UID
	switch {
	case known.Standing == registry.Removed:
		return (voter || learner) && r.dismiss(status, peer)
	case !met || recorded && known.Reserved():
		return false
	case (voter || learner) && recorded && !same:
		return r.change(raftpb.ConfChangeRemoveNode, peer)
	case (voter || learner) && !recorded && !r.answers(status, peer):
		return false
	case (voter || learner) && !recorded, recorded && !same:
		here.Standing = known.Standing
		return r.record(here, registry.Origin{})
	case !voter && !learner && same:
		return r.change(raftpb.ConfChangeAddLearnerNode, peer)
	case learner && known.Standing == registry.Voter && r.caughtUp(status, peer):
		return r.change(raftpb.ConfChangeAddNode, peer)
	case same && (known.PeerAddress != here.PeerAddress || known.ClientAddress != here.ClientAddress):
		here.Standing = known.Standing
		return r.record(here, registry.Origin{})
	}
	return false
}

// answers reports whether a member has what it acknowledges. A member that lost its data is
// blank, and acknowledges nothing. Before a founder is recorded, and without the founding
// record, nothing else distinguishes the two.
func (r *members) answers(status *agreement.Status, peer uint64) bool {
	return slices.ContainsFunc(status.Peers, func(p agreement.Peer) bool { return p.ID == peer && p.Match > 0 })
}

// emptied reports whether a member has lost its data and has not been taken back yet. Until
// then its vote does not count, whatever the configuration says.
func (r *members) emptied(id uint64) bool {
	known, recorded := r.reg.Member(id)
	here, met := r.met[id]
	return met && recorded && !known.Reserved() && known.UID != here.UID
}

// dismiss removes a removed server from the configuration. A leader would have to
// count without its own vote, so it hands over, and its successor does this.
func (r *members) dismiss(status *agreement.Status, peer uint64) bool {
	if peer == r.cfg.ID {
		r.handOver(status)
		return true
	}
	return r.change(raftpb.ConfChangeRemoveNode, peer)
}

func (r *members) record(m registry.Member, by registry.Origin) bool {
	r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpMember, Member: &m, By: &by})
	r.changing = true
	return true
}

func (r *members) change(kind raftpb.ConfChangeType, peer uint64) bool {
	change := &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: &peer}
	r.changing = r.core.ProposeChange(nil, change) == nil
	return r.changing
}

// caughtUp reports whether a server has all committed entries, or nearly all.
func (r *members) caughtUp(status *agreement.Status, id uint64) bool {
	const near = 100 // entries
	for _, p := range status.Peers {
		if p.ID == id {
			return r.live(id) && p.Match > 0 && p.Match+near >= status.Commit
		}
	}
	return false
}

// live reports whether a server was heard from recently.
func (r *members) live(id uint64) bool {
	heard, known := r.heard[id]
	return id == r.cfg.ID || known && r.now-heard <= 2*r.electionTimeout()
}

// handOver passes leadership to the voter that is the least behind and stays, if there is
// one. If that fails, the others elect a leader by themselves.
func (r *members) handOver(status *agreement.Status) {
	if best, _ := r.successor(status); best != 0 {
		_ = r.core.TransferLeader(best)
	}
}

// successor returns the voter that is the least behind and stays, or 0, and the last entry
// that it has stored.
func (r *members) successor(status *agreement.Status) (best, match uint64) {
	for _, p := range status.Peers {
		m, _ := r.reg.Member(p.ID)
		if p.ID != r.cfg.ID && !p.Learner && r.live(p.ID) && !r.emptied(p.ID) && m.Standing != registry.Removed && p.Match > match {
			best, match = p.ID, p.Match
		}
	}
	return best, match
}
