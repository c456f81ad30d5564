package world

import (
	"bytes"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// bounds limits what waits to be sent to a peer. The limits are lower than those of a real server,
// so that runs reach them.
var bounds = peering.Bounds{Messages: 32, Bytes: 96 << 10, Notes: 4, Quiet: backoffMax}

const (
	// window is the number of messages and notes that a connection may have in transit before the
	// other end has processed them.
	window = 8
	// blockedFor is the pause of a sender that finds its direction blocked.
	blockedFor = 50 * ms
	// partBytes is the size of the part of a snapshot in one frame.
	partBytes = 256
	// partTime is the maximum time until the next part is ready to be sent.
	partTime = 10 * ms
)

// letter is a raft message that is offered to the queue for a peer.
type letter struct {
	data []byte
	over *conn // the connection at that time
}

// crate is a snapshot in transit to a peer.
type crate struct {
	message *raftpb.Message
	came    bool // the peer has received all of it
	told    bool // the replica was informed about the result
}

// post is the judge's record of what is sent to a peer.
type post struct {
	waits    []*letter
	bytes    int
	lost     int64 // the time since which a loss is not reported, or 0
	reported int64 // the time of the last report, by the clock of the server
}

// offered is called after a letter was offered. taken means that it was not dropped.
func (p *post) offered(s *Server, l *letter, taken bool) {
	n := len(p.waits)
	room := l.over != nil && n < bounds.Messages && (n == 0 || p.bytes+len(l.data) <= bounds.Bytes)
	if taken != room {
		s.w.Violate("sending", "server %d has %d messages of %d bytes waiting for a peer, is connected: %t, and takes one of %d bytes: %t", s.ID, n, p.bytes, l.over != nil, len(l.data), taken)
	}
	if taken {
		p.waits, p.bytes = append(p.waits, l), p.bytes+len(l.data)
		return
	}
	if l.over != nil {
		s.w.Stats.Dropped++
	}
	p.lose(s)
}

func (p *post) lose(s *Server) {
	if p.lost == 0 {
		p.lost = s.w.Now
	}
}

// leaves is called when a letter is sent on a connection.
func (p *post) leaves(s *Server, c *conn, l *letter) {
	if len(p.waits) == 0 || p.waits[0] != l || l.over != c {
		s.w.Violate("sending", "server %d sends a message to server %d out of turn, or on another connection than it was for", s.ID, c.ends[acceptor].ID)
		return
	}
	p.waits, p.bytes = p.waits[1:], p.bytes-len(l.data)
}

// turns is called when a connection starts or ends. Letters that waited for it are lost.
func (p *post) turns(s *Server, up bool) {
	if len(p.waits) > 0 || !up {
		p.lose(s)
	}
	p.waits, p.bytes = nil, 0
}

// tells is called when a loss is reported.
func (p *post) tells(s *Server) {
	if now := s.Now(); p.lost == 0 || p.reported != 0 && now-p.reported < bounds.Quiet {
		s.w.Violate("sending", "server %d reports a loss that was not, or again after %d ms", s.ID, (now-p.reported)/ms)
	}
	p.lost, p.reported = 0, s.Now()
}

// losses checks that each loss is reported in time.
func (s *Server) losses() {
	for _, other := range s.w.Servers {
		if r := s.remotes[other.ID]; r != nil && r.post.lost != 0 && s.w.Now-max(r.post.lost, s.Woken) > 2*bounds.Quiet {
			s.w.Violate("sending", "server %d has not reported for %d ms that messages for server %d were lost", s.ID, (s.w.Now-r.post.lost)/ms, other.ID)
		}
	}
}

// send offers an encoded message to the queue for a peer.
func (s *Server) send(m *raftpb.Message) {
	to := m.GetTo()
	if to == 0 || to > uint64(len(s.w.Servers)) {
		return // the id was assigned, but the server has not started yet
	}
	r := s.remotes[to]
	if m.GetType() == raftpb.MsgSnap {
		s.offerSnapshot(to, r, m)
		return
	}
	if r == nil {
		return
	}
	data, err := proto.Marshal(m)
	if err != nil {
		s.w.Violate("codec", "a message of server %d cannot be written: %v", s.ID, err)
		return
	}
	l := &letter{data, s.over(to)}
	taken := r.out.Offer(l, len(data))
	if r.post.offered(s, l, taken); taken {
		s.write(l.over)
	} else {
		s.report(to, r)
	}
}

// tell sends a digest to all other servers.
func (s *Server) tell(d replica.Digest) {
	for _, other := range s.w.Servers {
		if r := s.remotes[other.ID]; r != nil {
			r.out.Note(d)
			if c := s.over(other.ID); c != nil {
				s.write(c)
			}
		}
	}
}

// introduce sends the introduction of a server again, because its contents have changed.
func (s *Server) introduce() {
	for _, other := range s.w.Servers {
		if r := s.remotes[other.ID]; r != nil {
			r.out.Introduce()
			if c := s.over(other.ID); c != nil {
				s.write(c)
			}
		}
	}
}

// connected informs the replica that messages to a peer can be sent from now on, or no longer.
func (s *Server) connected(c *conn, up bool) {
	id := c.ends[acceptor].ID
	r := s.remote(id)
	c.up = up
	r.out.Connected(up)
	r.post.turns(s, up)
	s.report(id, r)
	s.write(c)
}

// write sends what waits for a peer until the connection accepts no more.
func (s *Server) write(c *conn) {
	other := c.ends[acceptor]
	for c.up && c.alive(dialler) && !s.Paused && !c.stalled && c.flying < window {
		if s.w.Net.Blocked(s.Endpoint(), other.Endpoint()) {
			c.stall(blockedFor)
			return
		}
		r := s.remotes[other.ID]
		item, _ := r.out.Next()
		switch item.Kind {
		case peering.Nothing:
			return
		case peering.Introduction:
			frame := s.hello(other.ID).Append(nil)
			c.say(acceptor, func() { other.again(c, frame) })
		case peering.Note:
			c.fly(func() {
				if other.Up() {
					other.Replica.Compare(s.ID, item.Note)
				}
			})
		case peering.Message:
			r.post.leaves(s, c, item.Message)
			c.fly(func() { other.arrive(c, item.Message.data) })
		}
		if s.Narrow > 0 {
			c.stall(s.Narrow)
		}
	}
}

// stall stops the dialler from sending for a while.
func (c *conn) stall(d int64) {
	c.stalled = true
	c.ends[dialler].w.After(d, func() {
		c.stalled = false
		c.ends[dialler].write(c)
	})
}

// fly sends something that may be lost to the other end. It counts as in transit until the other
// end has processed it.
func (c *conn) fly(take func()) {
	s, other, landed := c.ends[dialler], c.ends[acceptor], false
	land := func() {
		if landed {
			return
		}
		landed = true
		if c.flying--; c.flying == window-1 {
			s.w.After(s.w.Net.Delay(), func() { s.write(c) })
		}
	}
	c.flying++
	s.w.Net.Packet(s.Endpoint(), other.Endpoint(), func() {
		if c.alive(acceptor) {
			other.TakeAlways(func() {
				land()
				c.arrives(acceptor, take)
			})
		}
	}, land)
}

// report informs the replica about lost messages from time to time.
func (s *Server) report(to uint64, r *remote) {
	if r.reporting {
		return
	}
	tell, wait := r.out.Report(s.Now())
	if tell {
		r.post.tells(s)
		s.Receive(func() { s.Replica.Unreachable(to) })
	}
	if wait > 0 {
		r.reporting = true
		life := s.Life
		s.w.After(s.clock.Real(wait), func() {
			if s.Life == life {
				s.TakeAlways(func() {
					r.reporting = false
					s.report(to, r)
				})
			}
		})
	}
}

// offerSnapshot queues a snapshot for a peer, or reports its failure.
func (s *Server) offerSnapshot(to uint64, r *remote, m *raftpb.Message) {
	x := &crate{message: m}
	s.w.Tell("server %d has a snapshot for server %d", s.ID, to)
	if r == nil || !r.snapshots.Offer(x) {
		s.shipped(to, x, false)
		return
	}
	s.ship(to)
}

// ship sends the next snapshot to a peer, on a separate connection.
func (s *Server) ship(to uint64) {
	r := s.remote(to)
	if x, any := r.snapshots.Begin(); any {
		s.dialFor(peering.Snapshots, s.w.Servers[to-1], x)
	}
}

// shipped informs the replica about the result of a snapshot.
func (s *Server) shipped(to uint64, x *crate, ok bool) {
	switch {
	case x.told:
		s.w.Violate("sending", "server %d tells again what became of a snapshot for server %d", s.ID, to)
	case ok && !x.came:
		s.w.Violate("sending", "server %d takes it that server %d has a snapshot, and that has not", s.ID, to)
	case !ok:
		s.w.Stats.BrokenOff++
	}
	x.told = true
	s.w.Tell("server %d learns that a snapshot has come to server %d: %t", s.ID, to, ok)
	s.Receive(func() { s.Replica.SnapshotSent(to, ok) })
}

// unpack starts to send the snapshot of a connection: first a head, then the data.
func (s *Server) unpack(c *conn) {
	m := proto.CloneOf(c.crate.message)
	data := m.Snapshot.Data
	m.Snapshot.Data = nil
	head, err := proto.Marshal(m)
	if err != nil {
		s.w.Violate("codec", "a snapshot of server %d cannot be written: %v", s.ID, err)
		return
	}
	other := c.ends[acceptor]
	c.say(acceptor, func() {
		c.arrival = peering.NewArrival(len(data))
		other.unload(c, head)
		s.pour(c, head, data)
	})
}

// pour sends the data of a snapshot. It sends each part when the previous one has arrived.
func (s *Server) pour(c *conn, head, data []byte) {
	if len(data) == 0 {
		return
	}
	other := c.ends[acceptor]
	s.w.Net.Carry(other.Endpoint(), s.Endpoint(), func() {
		s.w.After(s.Narrow+s.w.Net.Rand.Int64N(partTime), func() {
			s.atConn(c, dialler, func() {
				part := data[:min(len(data), partBytes)]
				c.say(acceptor, func() {
					if err := c.arrival.Add(part); err != nil {
						s.w.Violate("codec", "%v", err)
					}
					other.unload(c, head)
					s.pour(c, head, data[len(part):])
				})
			})
		})
	}, func() { s.atConn(c, dialler, func() { c.close(dialler) }) })
}

// unload delivers a complete snapshot, and reports that to the sender.
func (s *Server) unload(c *conn, head []byte) {
	if !c.arrival.Whole() || !c.current {
		return
	}
	m := new(raftpb.Message)
	if err := proto.Unmarshal(head, m); err != nil {
		s.w.Violate("codec", "a snapshot for server %d cannot be read: %v", s.ID, err)
		return
	}
	m.Snapshot.Data = c.arrival.Data()
	if c.crate.came = bytes.Equal(m.Snapshot.Data, c.crate.message.Snapshot.Data); !c.crate.came {
		s.w.Violate("sending", "server %d is given a snapshot of %d bytes, %d of which were sent", s.ID, len(c.crate.message.Snapshot.Data), len(m.Snapshot.Data))
	}
	s.accept(c, m)
	from := c.ends[dialler]
	c.say(dialler, func() {
		from.remote(s.ID).snapshots.Taken()
		c.close(dialler)
	})
}

// unship handles the end of a connection for a snapshot.
func (s *Server) unship(c *conn) {
	to := c.ends[acceptor].ID
	r := s.remote(to)
	if c.up {
		c.up = false
		r.known.Part()
	}
	r.bulk = nil
	s.shipped(to, c.crate, r.snapshots.End())
	s.ship(to)
}
