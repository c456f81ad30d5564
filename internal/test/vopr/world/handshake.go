package world

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/service/founding"
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// The timeouts of internal/service/transport, with its defaults.
const (
	pingInterval  = 200 * ms
	idleTimeout   = 5 * pingInterval
	handshakeTime = 3 * idleTimeout
	backoffMin    = 20 * ms
	backoffMax    = 500 * ms
	dialTimeout   = 1000 * ms
	refusedPause  = 5000 * ms
)

// cluster is the cluster id in introductions.
const cluster = 0xc0ffee

func peerAddress(id uint64) string { return fmt.Sprint("peer-", id) }

// said returns what a server reports about itself.
func (s *Server) said() registry.Member {
	return registry.Member{ID: s.ID, UID: s.disk.uid, PeerAddress: peerAddress(s.ID), ClientAddress: fmt.Sprint("client-", s.ID)}
}

// hello returns the introduction of a server to another one. internal/service/transport sends the same
// fields.
func (s *Server) hello(receiver uint64) peering.Hello {
	said, says := s.said(), s.founding.Says()
	says.UID = said.UID // other servers know the UID even if the server has not read its disk yet
	s.w.Judge.tells(s, says)
	h := peering.Hello{
		Version: peering.ProtocolVersion, Cluster: cluster, Server: s.ID, UID: said.UID, Receiver: receiver,
		PeerAddress: said.PeerAddress, ClientAddress: said.ClientAddress,
		Phase: says.Phase, Record: says.Record, MinLevel: s.levels.Min, MaxLevel: s.levels.Max,
	}
	if s.Up() {
		h.Level = s.Replica.Level()
	}
	return h
}

// examiner returns what a server uses to examine the introduction of another one.
func (s *Server) examiner(of uint64) *peering.Examiner {
	return &peering.Examiner{
		Self: s.hello(of), Ready: s.Up() || s.ready,
		Removed: func(id uint64) bool { return s.Up() && slices.Contains(s.Replica.Gone(), id) },
		Knows:   s.knows,
		Takes:   func(h peering.Hello) bool { return s.founding.Takes(h.Answer()) },
	}
}

// knows reports whether a server has the address of another one, either since its start or from the
// member list.
func (s *Server) knows(id uint64) bool {
	return slices.Contains(s.peers, id) || s.Up() && slices.ContainsFunc(s.Replica.Members(), func(m replica.Member) bool {
		return m.ID == id && m.PeerAddress != "" && !m.Reserved()
	})
}

// introduced decodes an introduction that was received.
func (s *Server) introduced(frame []byte) (h peering.Hello, ok bool) {
	h, err := peering.DecodeHello(frame)
	if err != nil {
		s.w.Violate("codec", "server %d cannot read an introduction: %v", s.ID, err)
	}
	return h, err == nil
}

// remote returns a server's record of another server.
func (s *Server) remote(id uint64) *remote {
	r := s.remotes[id]
	if r == nil {
		r = &remote{
			backoff: peering.Backoff{Min: backoffMin, Max: backoffMax, Refused: refusedPause, Lasting: backoffMax + dialTimeout},
			out:     peering.NewOutgoing[*letter, replica.Digest](bounds),
		}
		s.remotes[id] = r
	}
	return r
}

// acquaint makes a server dial all other servers that it knows, and close the connections with
// removed ones.
func (s *Server) acquaint() {
	for _, other := range s.w.Servers {
		switch r := s.remotes[other.ID]; {
		case other == s:
		case s.Up() && slices.Contains(s.Replica.Gone(), other.ID):
			s.hangUpOn(other)
		case s.knows(other.ID) && (r == nil || r.dialled == nil):
			s.dialFor(peering.Messages, other, nil)
		}
	}
}

// hangUpOn closes all connections with a server that was removed.
func (s *Server) hangUpOn(other *Server) {
	for _, c := range s.connsWith(other) {
		if end := c.at(s); c.alive(end) {
			c.close(end)
		}
	}
}

// dialFor connects to another server. If the attempt fails or the connection ends, it retries for
// as long as the other server is a peer. A connection for a snapshot is not retried: then the
// snapshot has failed.
func (s *Server) dialFor(ln peering.Lane, other *Server, x *crate) {
	c := &conn{lane: ln, crate: x, ends: [2]*Server{s, other}, lives: [2]int{s.Life, other.Life}, begun: s.w.Now, heard: [2]int64{s.w.Now, s.w.Now}}
	if ln == peering.Snapshots {
		s.remote(other.ID).bulk = c
	} else {
		s.remote(other.ID).dialled = c
	}
	if s.disk.uid == 0 { // it has no directory yet
		s.dialAgain(c, false)
		return
	}
	if !other.On || other.disk.uid == 0 {
		c.tell(dialler)
	} else {
		frame := s.hello(other.ID).Append(nil)
		c.say(acceptor, func() {
			c.there = true
			other.greeted(c, frame)
		})
	}
	giveUp := func(unless *bool) func() {
		return func() {
			s.atConn(c, dialler, func() {
				if !*unless {
					c.close(dialler)
				}
			})
		}
	}
	s.w.After(s.clock.Real(dialTimeout), giveUp(&c.there))
	s.w.After(s.clock.Real(handshakeTime), giveUp(&c.up))
}

// atConn makes a server do something for a connection that is open at its end.
func (s *Server) atConn(c *conn, end int, do func()) {
	if c.alive(end) {
		s.TakeAlways(func() {
			if c.alive(end) {
				do()
			}
		})
	}
}

// dialAgain retries after a pause.
func (s *Server) dialAgain(c *conn, refused bool) {
	other := c.ends[acceptor]
	pause := s.remote(other.ID).backoff.Next(s.w.Now-c.begun, refused, s.w.Net.Rand.Int64N)
	life := s.Life
	s.w.After(s.clock.Real(pause), func() {
		if s.Life == life {
			s.TakeAlways(func() {
				if r := s.remote(other.ID); r.dialled == c {
					r.dialled = nil
					s.acquaint()
				}
			})
		}
	})
}

// greeted processes the introduction of a server that has dialled.
func (s *Server) greeted(c *conn, frame []byte) {
	h, ok := s.introduced(frame)
	if !ok {
		return
	}
	examiner := s.examiner(h.Server)
	if refusal := examiner.Examine(h); refusal != nil {
		s.refuse(c, refusal)
		return
	}
	if !s.knows(h.Server) { // Examine has checked that this server may accept it
		s.peers = append(s.peers[:len(s.peers):len(s.peers)], h.Server)
		s.acquaint()
	}
	s.admit(c, &peering.Newcomer[*conn]{Lane: c.lane, Conn: c, Hello: h}, s.w.Now+handshakeTime*5/6)
}

// admit makes a connection the current one with its peer, or refuses it.
func (s *Server) admit(c *conn, n *peering.Newcomer[*conn], until int64) {
	r := s.remote(n.Hello.Server)
	switch admission := r.known.Admit(s.ID, n, r.heard, s.w.Now > until); admission.Step {
	case peering.Reject:
		s.refuse(c, admission.Refusal)
	case peering.Replace:
		r.known.Inbound(c.lane).close(acceptor)
		s.admit(c, n, until)
	case peering.Wait:
		s.w.After(s.clock.Real(pingInterval), func() {
			s.atConn(c, acceptor, func() { s.admit(c, n, until) })
		})
	case peering.Admitted:
		s.admitted(c, n.Hello)
		if d := r.dialled; admission.Redial && d != nil && d.gone == [2]bool{true, true} {
			r.dialled = nil
			s.acquaint()
		}
	}
}

func (s *Server) admitted(c *conn, h peering.Hello) {
	c.current, c.uids[acceptor] = true, h.UID
	s.alike(c)
	s.w.Stats.Connected++
	frame := s.hello(h.Server).Append(nil)
	c.say(dialler, func() { c.ends[dialler].welcomed(c, frame) })
	s.met(h)
	c.beat(acceptor)
}

// refuse refuses the connection of another server.
func (s *Server) refuse(c *conn, refusal *peering.Refusal) {
	frame := refusal.Append(nil)
	c.say(dialler, func() { c.ends[dialler].refused(c, frame) })
}

func (s *Server) refused(c *conn, frame []byte) {
	refusal, err := peering.DecodeRefusal(frame)
	if err != nil {
		s.w.Violate("codec", "server %d cannot read a refusal: %v", s.ID, err)
		return
	}
	by := c.ends[acceptor].ID
	r := s.remote(by)
	c.gone = [2]bool{true, true}
	if refusal.Code == peering.LevelUnknown {
		c.ends[acceptor].replaced(refusal.Text) // an operator reads the text in the log of this server
	}
	if c.lane == peering.Snapshots {
		s.unship(c)
		return
	}
	c.outdated = refusal.Code == peering.LevelUnknown
	s.dialAgain(c, refusal.Final())
	if !r.known.Refused(refusal) || refusal.Code == peering.LevelUnknown && s.replaced(refusal.Text) {
		return
	}
	why := refusal.Reason()
	switch stop := s.founding.Refused(by, why, len(s.peers)-1, s.served); {
	case stop && why == founding.Removed:
		s.retire()
	case stop:
		s.w.Violate("stop", "server %d stops because server %d refuses it: %s", s.ID, by, refusal.Text)
	}
}

// replaced makes an operator read the text of a refusal. If this server does not support the level
// of the cluster, the operator installs a release that does.
func (s *Server) replaced(text string) bool {
	var id uint64
	var from, to, level uint32
	if _, err := fmt.Sscanf(text, "server %d reads levels %d to %d, the cluster is at level %d:", &id, &from, &to, &level); err != nil || id != s.ID {
		return false
	}
	s.Crash()
	s.levels = replica.Levels{Min: max(level, 2) - 1, Max: level}
	s.w.After(100*ms, func() {
		if !s.On && s.held == 0 && !s.removed && s.disk.hung == 0 { // two servers may refuse this one
			s.boot()
		}
	})
	return true
}

// welcomed processes the introduction of the server that was dialled.
func (s *Server) welcomed(c *conn, frame []byte) {
	peer := c.ends[acceptor].ID
	h, ok := s.introduced(frame)
	if !ok {
		return
	}
	r := s.remote(peer)
	if s.examiner(peer).Recognise(peer, h) != nil || !r.known.Join(c.lane, h) {
		c.close(dialler)
		return
	}
	c.uids[dialler] = h.UID
	if c.lane == peering.Snapshots {
		c.up = true
	} else {
		s.connected(c, true)
	}
	s.alike(c)
	s.met(h)
	c.beat(dialler)
	if c.lane == peering.Snapshots {
		s.unpack(c)
	}
}

// alike checks that both connections with a peer are with the same directory.
func (s *Server) alike(c *conn) {
	for _, other := range s.connsWith(c.ends[1-c.at(s)]) {
		if mine := other.at(s); (other.up || mine == acceptor) && other.uids[mine] != c.uids[c.at(s)] {
			s.w.Violate("connection", "server %d is connected with two directories of one server: %d and %d", s.ID, other.uids[mine], c.uids[c.at(s)])
		}
	}
}

// met records the introduction of another server.
func (s *Server) met(h peering.Hello) {
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

// again processes a repeated introduction of a peer.
func (s *Server) again(c *conn, frame []byte) {
	h, ok := s.introduced(frame)
	if !ok || !c.current {
		return
	}
	if err := s.remote(h.Server).known.Again(h.Server, h); err != nil {
		c.close(acceptor)
		return
	}
	s.met(h)
}
