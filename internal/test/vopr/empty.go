package vopr

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/agreement"
	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

// loss says what a server lost with its disk.
const (
	lossOfAll    = 0 // the whole directory
	lossOfRecord = 1 // the file with the founding record; the store opens the rest
	lossInOutage = 2 // the whole directory, in a power failure that takes all servers down
)

// empty takes a server down and deletes its disk. It does nothing if acknowledged data may need the
// disk: see mayEmpty.
func (w *world) empty(f faults.Fault, s *server) {
	switch {
	case f.Arg == lossOfRecord && s.disk.record != nil && s.disk.kept.Snapshot != nil:
		s.crash()
		s.disk.record = nil
	case f.Arg == lossOfRecord || !w.mayEmpty(s):
		return
	default:
		s.crash()
		s.lose()
	}
	down := f.For * ms
	if f.Arg == lossInOutage {
		down /= 2 // it is up again before the others have read their disks
		for _, other := range w.servers {
			if other != s {
				w.bootSlowly(f, other)
			}
		}
	}
	w.hold(s, down)
}

// bootSlowly restarts a server that needs long to read its disk.
func (w *world) bootSlowly(f faults.Fault, s *server) {
	if !s.on {
		return
	}
	s.crash()
	s.slowness = f.For * ms
	w.raise(s)
}

// lose deletes the disk of a server that is down, for the judge too.
func (s *server) lose() {
	s.wipe()
	s.w.note("emptied", s.id, 0)
	s.w.stats.Emptied++
}

// wipe deletes the disk of a server that is down.
func (s *server) wipe() {
	s.disk.uid, s.disk.record, s.disk.kept = 0, nil, agreement.Disk{}
	s.lost, s.members = true, members{}
}

// mayEmpty reports whether a server may lose its disk. Acknowledged data is safe while fewer than
// half of the voters have lost their disks without having been taken back. If a leader says that its
// configuration is settled, this must hold only in that one. Otherwise it must hold in the last one of
// which a leader said so, and in every configuration that some server knows, because nobody knows
// which one is in effect. A learner counts as a voter, because it may be one by now. While an
// operator changes the members, or has stopped waiting for a removal, the next configuration is
// unknown. Then no disk is deleted.
func (w *world) mayEmpty(s *server) bool {
	if s.removed || s.lost || s.disk.uid == 0 || s.disk.hung > 0 || w.asking != nil || w.doubtful {
		return false
	}
	if leader := w.leader(); leader != nil {
		leader.noteMembers()
		if leader.replica.Status().Settled {
			return w.settled.spare(s)
		}
	}
	if w.settled.voters != nil && !w.settled.spare(s) {
		return false
	}
	known := w.settled.voters != nil
	for _, other := range w.servers {
		if other.removed {
			continue
		}
		other.noteMembers()
		if other.voters == nil {
			continue
		}
		known = true
		if !other.members.spare(s) {
			return false
		}
	}
	return known || w.spares(w.founders, s)
}

// members are the voters and learners of a configuration.
type members struct{ voters, learners []uint64 }

// spare reports whether a server may lose its data if these are the members, whether or not it has
// become a voter by now.
func (m *members) spare(s *server) bool {
	voters := slices.Clone(m.voters)
	if slices.Contains(m.learners, s.id) {
		voters = append(voters, s.id)
	}
	return s.w.spares(voters, s) && s.w.spares(m.voters, s)
}

// spares reports whether fewer than half of these voters have lost their data, if one more loses
// it.
func (w *world) spares(voters []uint64, more *server) bool {
	lost := 0
	for _, id := range voters {
		if s := w.servers[id-1]; s.lost || s == more {
			lost++
		}
	}
	return 2*lost < len(voters)
}

// noteMembers stores the voters and learners that a server knows. The judge needs them while the
// server is down.
func (s *server) noteMembers() {
	if s.up() && !s.replica.Blank() {
		status := s.replica.Status()
		s.members = members{status.Voters, status.Learners}
		if status.Settled && status.Term >= s.w.settledIn {
			s.w.settled, s.w.settledIn = s.members, status.Term
		}
	}
}

// anyLost reports whether a server has lost its disk and was not taken back.
func (w *world) anyLost() bool {
	return slices.ContainsFunc(w.servers, func(s *server) bool { return s.lost && !s.removed })
}

// takenBack records that a server which had lost its disk is a full member again. It has applied
// the entry that takes it back, and therefore all entries before it.
func (s *server) takenBack() {
	if !s.lost || s.replica.Blank() {
		return
	}
	status := s.replica.Status()
	m, _ := s.replica.Registry().Member(s.id)
	if slices.Contains(status.Voters, s.id) || m.Standing == registry.Learner && slices.Contains(status.Learners, s.id) {
		s.lost = false
		s.w.stats.TakenBack++
		s.w.note("taken back", s.id, s.disk.uid)
	}
}

// mustJoin reports whether a server with an empty disk has to ask the cluster for its id. That is
// the case if it joined, or if no other founder is left that can tell it its id. It knows no other
// servers (docs/operations.md).
func (s *server) mustJoin() bool {
	others := slices.DeleteFunc(slices.Clone(s.w.founders), func(id uint64) bool { return id == s.id || s.w.servers[id-1].removed })
	s.joined = s.joined || len(others) == 0 && len(s.w.founders) > 1
	return s.joined
}

// askBack makes an operator join a server with its old address and a new directory.
func (s *server) askBack() {
	if s.askingBack {
		return
	}
	s.askingBack = true
	said := s.said()
	said.ID, said.UID = 0, s.w.drawUID()
	s.askAgain(replica.Change{Kind: replica.Join, Server: said})
}

func (s *server) askAgain(change replica.Change) {
	switch leader := s.w.leader(); {
	case s.removed || !s.askingBack:
		return
	case leader != nil:
		leader.receive(func() {
			if !s.askingBack {
				return
			}
			id, done, err := leader.replica.Change(leader.tellTime(), change)
			var refused *replica.ChangeError
			switch {
			case errors.As(err, &refused) && !refused.Busy:
				s.w.violate("join", "server %d is not taken back: %v", s.id, err)
			case done && id == s.id:
				s.askingBack, s.disk.uid = false, change.Server.UID
				s.peers = leader.told()
				if s.held == 0 {
					s.start()
				}
			case done: // the old server was removed, and this is a new one
				s.askingBack, s.removed = false, true
			}
		})
	}
	s.w.after(askPeriod, func() { s.askAgain(change) })
}

// told returns the ids of the members, for a server that joins. A founder that is not recorded yet is
// one of them: the others have its address from their settings.
func (s *server) told() (ids []uint64) {
	for _, m := range s.replica.Members() {
		if m.Standing != registry.Removed && (!m.Reserved() || m.Voter || m.Learner) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// tells checks that what a server reports about itself is on its disk.
func (j *judge) tells(s *server, says founding.Answer) {
	switch {
	case says.Phase >= founding.Recorded && !says.Record.Equal(s.disk.record):
		s.w.violate("founding", "server %d tells of the record %v, and has %v on its disk", s.id, says.Record, s.disk.record)
	case says.Phase == founding.Founded && s.disk.fresh():
		s.w.violate("founding", "server %d tells that it has founded, and has no state on its disk", s.id)
	}
}

// founds checks that a server founds only once, and that all founders found the same cluster.
func (j *judge) founds(s *server) {
	r := s.disk.record
	switch {
	case j.record != nil && !j.record.Equal(r):
		s.w.violate("founding", "server %d founds a cluster with the record %v; another was founded with %v", s.id, r, j.record)
	case j.founded[s.id]:
		s.w.violate("founding", "server %d founds again, with the directory %d: it may have voted with another", s.id, s.disk.uid)
	}
	j.record = r
	j.founded[s.id] = true
	s.w.stats.Founded++
}

// answers checks a server without state. It must not vote, and must not answer a leader that would
// count its answer.
func (j *judge) answers(s *server, m *raftpb.Message) {
	if !s.replica.Blank() || m.GetTo() > uint64(len(s.w.servers)) {
		return
	}
	switch m.GetType() {
	case raftpb.MsgVoteResp, raftpb.MsgPreVoteResp:
		if !m.GetReject() {
			s.w.violate("blank", "server %d has lost its data, and votes for server %d", s.id, m.GetTo())
		}
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		to := s.w.servers[m.GetTo()-1]
		if to.up() && to.replica.Leading() && to.replica.Term() == m.GetTerm() && slices.Contains(to.replica.Status().Voters, s.id) {
			s.w.violate("blank", "server %d has lost its data, and answers server %d, which leads and counts on its vote", s.id, to.id)
		}
	}
}
