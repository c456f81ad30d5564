package world

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// cluster is the cluster id in introductions.
const cluster = 0xc0ffee

func peerAddress(id uint64) string { return fmt.Sprint("peer-", id) }

// said returns what a server reports about itself.
func (s *Server) said() registry.Member {
	return registry.Member{ID: s.ID, UID: s.disk.UID, PeerAddress: peerAddress(s.ID), ClientAddress: fmt.Sprint("client-", s.ID)}
}

// handler passes on the events of the transport, as in internal/service/node.
type handler struct{ *Server }

// Directory returns the UID of the directory of a server, 0 if there is none.
func (s handler) Directory() uint64 { return s.disk.UID }

// Hello returns the introduction of a server to another one. internal/service/transport sends the same
// fields.
func (s handler) Hello(receiver uint64) peering.Hello {
	said, says := s.said(), s.founding.Says()
	says.UID = said.UID // other servers know the UID even if the server has not read its disk yet
	s.w.Judge.tells(s.Server, says)
	h := peering.Hello{
		Version: peering.ProtocolVersion, Cluster: cluster, Server: s.ID, UID: said.UID, Receiver: receiver,
		PeerAddress: said.PeerAddress, ClientAddress: said.ClientAddress,
		Phase: says.Phase, Record: says.Record, MinLevel: s.levels.Min, MaxLevel: s.levels.Max,
	}
	if s.Up() {
		h.Level = s.Replica.Level()
	}
	if h.Nonce = s.nonce; h.Nonce != 0 {
		h.Age = uint64(s.Now() - s.born)
	}
	return h
}

// Examiner returns what a server uses to examine the introduction of another one.
func (s handler) Examiner(of uint64) *peering.Examiner {
	return &peering.Examiner{
		Self: s.Hello(of), Ready: s.Up() || s.ready,
		Removed: s.Gone,
		Knows:   s.Knows,
		Takes:   func(h peering.Hello) bool { return s.founding.Takes(h.Answer()) },
	}
}

// Knows reports whether a server has the address of another one, either since its start or from the
// member list.
func (s handler) Knows(id uint64) bool {
	return slices.Contains(s.peers, id) || s.Up() && slices.ContainsFunc(s.Replica.Members(), func(m replica.Member) bool {
		return m.ID == id && m.PeerAddress != "" && !m.Reserved()
	})
}

// Gone reports whether a server was removed.
func (s handler) Gone(id uint64) bool { return s.Up() && slices.Contains(s.Replica.Gone(), id) }

// Accept makes another server a peer.
func (s handler) Accept(id uint64) { s.peers = append(s.peers[:len(s.peers):len(s.peers)], id) }

// Refused decides what a server does that another one refuses.
func (s handler) Refused(by uint64, refusal *peering.Refusal) {
	why := refusal.Reason()
	switch stop := s.founding.Refused(by, why, len(s.peers)-1, s.served); {
	case stop && why == founding.Removed:
		s.retire()
	case stop && refusal.SharesData():
		s.w.yields(s.Server, why)
	case stop:
		s.w.Violate("stop", "server %d stops because server %d refuses it: %s", s.ID, by, refusal.Text)
	}
}

// Replaced makes an operator read the text of a refusal. If this server does not support the level
// of the cluster, the operator installs a release that does.
func (s handler) Replaced(text string) bool {
	var id uint64
	var from, to, level uint32
	if _, err := fmt.Sscanf(text, "server %d reads levels %d to %d, the cluster is at level %d:", &id, &from, &to, &level); err != nil || id != s.ID {
		return false
	}
	s.Crash()
	s.levels = replica.Levels{Min: max(level, 2) - 1, Max: level}
	s.w.After(100*ms, func() {
		if !s.On && s.held == 0 && !s.removed && !s.disk.Hangs() { // two servers may refuse this one
			s.boot()
		}
	})
	return true
}

// Met records the introduction of another server.
func (s handler) Met(h peering.Hello) {
	s.contacts[h.Server] = h
	s.founding.Hear(h.Server, h.Answer())
	if s.Up() {
		s.Replica.Met(memberOf(h), levelsOf(h))
	}
	s.decide()
}

func memberOf(h peering.Hello) registry.Member {
	return registry.Member{ID: h.Server, UID: h.UID, PeerAddress: h.PeerAddress, ClientAddress: h.ClientAddress}
}

func levelsOf(h peering.Hello) replica.Levels {
	return replica.Levels{Min: h.MinLevel, Max: h.MaxLevel, Build: h.Build}
}

// Lost records that the connection to a peer is broken.
func (s handler) Lost(peer uint64) {
	if s.founding.Lose(peer) {
		delete(s.contacts, peer)
	}
}

// Welcomed records that a peer has accepted a connection.
func (s handler) Welcomed(peer uint64) { s.founding.Welcomed(peer) }

// Noted compares the digest of a peer with the own state.
func (s handler) Noted(peer uint64, d replica.Digest) {
	if s.Up() {
		s.Replica.Compare(peer, d)
	}
}

// Unreachable informs the replica about lost messages to a peer.
func (s handler) Unreachable(peer uint64) {
	s.Server.Receive(func() { s.Replica.Unreachable(peer) })
}

// SnapshotSent informs the replica about the result of a snapshot.
func (s handler) SnapshotSent(peer uint64, ok bool) {
	s.Server.Receive(func() { s.Replica.SnapshotSent(peer, ok) })
}

// Receive passes a message of a peer to the replica.
func (s handler) Receive(peer uint64, m *raftpb.Message) {
	if s.Up() {
		s.w.Note(m.GetType().String(), peer<<8|s.ID, m.GetTerm()<<32|m.GetIndex())
		s.Replica.Receive(s.TellTime(), m)
	}
}
