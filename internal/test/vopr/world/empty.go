package world

import (
	"errors"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/disk"
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
func (w *World) empty(f faults.Fault, s *Server) {
	switch {
	case f.Arg == lossOfRecord && s.disk.Record != nil && s.disk.State.Snapshot != nil:
		s.Crash()
		s.disk.Record = nil
	case f.Arg == lossOfRecord || !w.mayEmpty(s):
		return
	default:
		s.Crash()
		s.lose()
	}
	down := f.For * ms
	if f.Arg == lossInOutage {
		down /= 2 // it is up again before the others have read their disks
		for _, other := range w.Servers {
			if other != s {
				w.bootSlowly(f, other)
			}
		}
	}
	w.Hold(s, down)
}

// bootSlowly restarts a server that needs long to read its disk.
func (w *World) bootSlowly(f faults.Fault, s *Server) {
	if !s.On {
		return
	}
	s.Crash()
	s.slowness = f.For * ms
	w.raise(s)
}

// lose deletes the disk of a server that is down, for the judge too.
func (s *Server) lose() {
	s.wipe()
	s.w.Note("emptied", s.ID, 0)
	s.w.Stats.Emptied++
}

// wipe deletes the disk of a server that is down.
func (s *Server) wipe() {
	s.disk.Contents = disk.Contents{}
	s.lost, s.members = true, members{}
}

// mayEmpty reports whether a server may lose its disk. Acknowledged data is safe while fewer than
// half of the voters have lost their disks without having been taken back. If a leader says that its
// configuration is settled, this must hold only in that one. Otherwise it must hold in the last one of
// which a leader said so, and in every configuration that some server knows, because nobody knows
// which one is in effect. A learner counts as a voter, because it may be one by now. While an
// operator changes the members, or has stopped waiting for a removal, the next configuration is
// unknown. Then no disk is deleted.
func (w *World) mayEmpty(s *Server) bool {
	if s.removed || s.lost || s.disk.UID == 0 || s.disk.Hangs() || w.asking != nil || w.doubtful {
		return false
	}
	if leader := w.Leader(); leader != nil {
		leader.noteMembers()
		if leader.Replica.Status().Settled {
			return w.settled.spare(s)
		}
	}
	if w.settled.voters != nil && !w.settled.spare(s) {
		return false
	}
	known := w.settled.voters != nil
	for _, other := range w.Servers {
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
func (m *members) spare(s *Server) bool {
	voters := slices.Clone(m.voters)
	if slices.Contains(m.learners, s.ID) {
		voters = append(voters, s.ID)
	}
	return s.w.spares(voters, s) && s.w.spares(m.voters, s)
}

// spares reports whether fewer than half of these voters have lost their data, if one more loses
// it.
func (w *World) spares(voters []uint64, more *Server) bool {
	lost := 0
	for _, id := range voters {
		if s := w.Servers[id-1]; s.lost || s == more {
			lost++
		}
	}
	return 2*lost < len(voters)
}

// noteMembers stores the voters and learners that a server knows. The judge needs them while the
// server is down.
func (s *Server) noteMembers() {
	if s.Up() && !s.Replica.Blank() {
		status := s.Replica.Status()
		s.members = members{status.Voters, status.Learners}
		if status.Settled && status.Term >= s.w.settledIn {
			s.w.settled, s.w.settledIn = s.members, status.Term
		}
	}
}

// anyLost reports whether a server has lost its disk and was not taken back.
func (w *World) anyLost() bool {
	return slices.ContainsFunc(w.Servers, func(s *Server) bool { return s.lost && !s.removed })
}

// takenBack records that a server which had lost its disk is a full member again. It has applied
// the entry that takes it back, and therefore all entries before it.
func (s *Server) takenBack() {
	if !s.lost || s.Replica.Blank() {
		return
	}
	status := s.Replica.Status()
	m, _ := s.Replica.Registry().Member(s.ID)
	if slices.Contains(status.Voters, s.ID) || m.Standing == registry.Learner && slices.Contains(status.Learners, s.ID) {
		s.lost = false
		s.w.Stats.TakenBack++
		s.w.Note("taken back", s.ID, s.disk.UID)
	}
}

// mustJoin reports whether a server with an empty disk has to ask the cluster for its id. That is
// the case if it joined, or if no other founder is left that can tell it its id. It knows no other
// servers (docs/operations.md).
func (s *Server) mustJoin() bool {
	others := slices.DeleteFunc(slices.Clone(s.w.founders), func(id uint64) bool { return id == s.ID || s.w.Servers[id-1].removed })
	s.joined = s.joined || len(others) == 0 && len(s.w.founders) > 1
	return s.joined
}

// askBack makes an operator join a server with its old address and a new directory.
func (s *Server) askBack() {
	if s.askingBack {
		return
	}
	s.askingBack = true
	said := s.said()
	said.ID, said.UID = 0, s.w.drawUID()
	s.askAgain(replica.Change{Kind: replica.Join, Server: said})
}

func (s *Server) askAgain(change replica.Change) {
	switch leader := s.w.Leader(); {
	case s.removed || !s.askingBack:
		return
	case leader != nil:
		leader.Receive(func() {
			if !s.askingBack {
				return
			}
			id, done, err := leader.Replica.Change(leader.TellTime(), change)
			var refused *replica.ChangeError
			switch {
			case errors.As(err, &refused) && !refused.Busy:
				s.w.Violate("join", "server %d is not taken back: %v", s.ID, err)
			case done && id == s.ID:
				s.askingBack, s.disk.UID = false, change.Server.UID
				s.peers = leader.told()
				if s.held == 0 {
					s.start()
				}
			case done: // the old server was removed, and this is a new one
				s.askingBack, s.removed = false, true
			}
		})
	}
	s.w.After(askPeriod, func() { s.askAgain(change) })
}

// told returns the ids of the members, for a server that joins. A founder that is not recorded yet is
// one of them: the others have its address from their settings.
func (s *Server) told() (ids []uint64) {
	for _, m := range s.Replica.Members() {
		if m.Standing != registry.Removed && (!m.Reserved() || m.Voter || m.Learner) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// tells checks that what a server reports about itself is on its disk.
func (j *judge) tells(s *Server, says founding.Answer) {
	switch {
	case says.Phase >= founding.Recorded && !says.Record.Equal(s.disk.Record):
		s.w.Violate("founding", "server %d tells of the record %v, and has %v on its disk", s.ID, says.Record, s.disk.Record)
	case says.Phase == founding.Founded && s.disk.Fresh():
		s.w.Violate("founding", "server %d tells that it has founded, and has no state on its disk", s.ID)
	}
}

// founds checks that a server founds only once, and that all founders found the same cluster.
func (j *judge) founds(s *Server) {
	r := s.disk.Record
	switch {
	case j.record != nil && !j.record.Equal(r):
		s.w.Violate("founding", "server %d founds a cluster with the record %v; another was founded with %v", s.ID, r, j.record)
	case j.founded[s.ID]:
		s.w.Violate("founding", "server %d founds again, with the directory %d: it may have voted with another", s.ID, s.disk.UID)
	}
	j.record = r
	j.founded[s.ID] = true
	s.w.Stats.Founded++
}

// answers checks a server without state. It must not vote, and must not answer a leader that would
// count its answer.
func (j *judge) answers(s *Server, m *raftpb.Message) {
	if !s.Replica.Blank() || m.GetTo() > uint64(len(s.w.Servers)) {
		return
	}
	switch m.GetType() {
	case raftpb.MsgVoteResp, raftpb.MsgPreVoteResp:
		if !m.GetReject() {
			s.w.Violate("blank", "server %d has lost its data, and votes for server %d", s.ID, m.GetTo())
		}
	case raftpb.MsgAppResp, raftpb.MsgHeartbeatResp:
		to := s.w.Servers[m.GetTo()-1]
		if to.Up() && to.Replica.Leading() && to.Replica.Term() == m.GetTerm() && slices.Contains(to.Replica.Status().Voters, s.ID) {
			s.w.Violate("blank", "server %d has lost its data, and answers server %d, which leads and counts on its vote", s.ID, to.ID)
		}
	}
}
