package transport

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
func (p *post) offered(t *Transport, l *letter, taken bool) {
	n := len(p.waits)
	room := l.over != nil && n < bounds.Messages && (n == 0 || p.bytes+len(l.data) <= bounds.Bytes)
	if taken != room {
		t.net.Violate("sending", "server %d has %d messages of %d bytes waiting for a peer, is connected: %t, and takes one of %d bytes: %t", t.ID, n, p.bytes, l.over != nil, len(l.data), taken)
	}
	if taken {
		p.waits, p.bytes = append(p.waits, l), p.bytes+len(l.data)
		return
	}
	if l.over != nil {
		t.net.Stats.Dropped++
	}
	p.lose(t)
}

func (p *post) lose(t *Transport) {
	if p.lost == 0 {
		p.lost = t.net.Now
	}
}

// leaves is called when a letter is sent on a connection.
func (p *post) leaves(t *Transport, c *conn, l *letter) {
	if len(p.waits) == 0 || p.waits[0] != l || l.over != c {
		t.net.Violate("sending", "server %d sends a message to server %d out of turn, or on another connection than it was for", t.ID, c.ends[acceptor].ID)
		return
	}
	p.waits, p.bytes = p.waits[1:], p.bytes-len(l.data)
}

// turns is called when a connection starts or ends. Letters that waited for it are lost.
func (p *post) turns(t *Transport, up bool) {
	if len(p.waits) > 0 || !up {
		p.lose(t)
	}
	p.waits, p.bytes = nil, 0
}

// tells is called when a loss is reported.
func (p *post) tells(t *Transport) {
	if now := t.Now(); p.lost == 0 || p.reported != 0 && now-p.reported < bounds.Quiet {
		t.net.Violate("sending", "server %d reports a loss that was not, or again after %d ms", t.ID, (now-p.reported)/ms)
	}
	p.lost, p.reported = 0, t.Now()
}

// Losses checks that each loss is reported in time.
func (t *Transport) Losses() {
	for _, other := range t.net.All {
		if r := t.remotes[other.ID]; r != nil && r.post.lost != 0 && t.net.Now-max(r.post.lost, t.Woken) > 2*bounds.Quiet {
			t.net.Violate("sending", "server %d has not reported for %d ms that messages for server %d were lost", t.ID, (t.net.Now-r.post.lost)/ms, other.ID)
		}
	}
}

// Send offers an encoded message to the queue for a peer.
func (t *Transport) Send(m *raftpb.Message) {
	to := m.GetTo()
	if to == 0 || to > uint64(len(t.net.All)) {
		return // the id was assigned, but the server has not started yet
	}
	r := t.remotes[to]
	if m.GetType() == raftpb.MsgSnap {
		t.offerSnapshot(to, r, m)
		return
	}
	if r == nil {
		return
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.net.Violate("codec", "a message of server %d cannot be written: %v", t.ID, err)
		return
	}
	l := &letter{data, t.over(to)}
	taken := r.out.Offer(l, len(data))
	if r.post.offered(t, l, taken); taken {
		t.write(l.over)
	} else {
		t.report(to, r)
	}
}

// Note sends a digest to all other servers.
func (t *Transport) Note(d replica.Digest) {
	for _, other := range t.net.All {
		if r := t.remotes[other.ID]; r != nil {
			r.out.Note(d)
			if c := t.over(other.ID); c != nil {
				t.write(c)
			}
		}
	}
}

// Introduce sends the introduction of a server again, because its contents have changed.
func (t *Transport) Introduce() {
	for _, other := range t.net.All {
		if r := t.remotes[other.ID]; r != nil {
			r.out.Introduce()
			if c := t.over(other.ID); c != nil {
				t.write(c)
			}
		}
	}
}

// connected informs the replica that messages to a peer can be sent from now on, or no longer.
func (t *Transport) connected(c *conn, up bool) {
	id := c.ends[acceptor].ID
	r := t.remote(id)
	c.up = up
	r.out.Connected(up)
	r.post.turns(t, up)
	t.report(id, r)
	t.write(c)
}

// write sends what waits for a peer until the connection accepts no more.
func (t *Transport) write(c *conn) {
	other := c.ends[acceptor]
	for c.up && c.alive(dialler) && !t.Paused && !c.stalled && c.flying < window {
		if t.net.Blocked(t.Endpoint(), other.Endpoint()) {
			c.stall(blockedFor)
			return
		}
		r := t.remotes[other.ID]
		item, _ := r.out.Next()
		switch item.Kind {
		case peering.Nothing:
			return
		case peering.Introduction:
			frame := t.h.Hello(other.ID).Append(nil)
			c.say(acceptor, func() { other.again(c, frame) })
		case peering.Note:
			c.fly(func() {
				other.h.Noted(t.ID, item.Note)
			})
		case peering.Message:
			r.post.leaves(t, c, item.Message)
			c.fly(func() { other.arrive(c, item.Message.data) })
		}
		if t.Narrow > 0 {
			c.stall(t.Narrow)
		}
	}
}

// stall stops the dialler from sending for a while.
func (c *conn) stall(d int64) {
	c.stalled = true
	c.ends[dialler].net.After(d, func() {
		c.stalled = false
		c.ends[dialler].write(c)
	})
}

// fly sends something that may be lost to the other end. It counts as in transit until the other
// end has processed it.
func (c *conn) fly(take func()) {
	t, other, landed := c.ends[dialler], c.ends[acceptor], false
	land := func() {
		if landed {
			return
		}
		landed = true
		if c.flying--; c.flying == window-1 {
			t.net.After(t.net.Delay(), func() { t.write(c) })
		}
	}
	c.flying++
	t.net.Packet(t.Endpoint(), other.Endpoint(), func() {
		if c.alive(acceptor) {
			other.TakeAlways(func() {
				land()
				c.arrives(acceptor, take)
			})
		}
	}, land)
}

// report informs the replica about lost messages from time to time.
func (t *Transport) report(to uint64, r *remote) {
	if r.reporting {
		return
	}
	tell, wait := r.out.Report(t.Now())
	if tell {
		r.post.tells(t)
		t.h.Unreachable(to)
	}
	if wait > 0 {
		r.reporting = true
		life := t.Life
		t.net.After(t.Clock.Real(wait), func() {
			if t.Life == life {
				t.TakeAlways(func() {
					r.reporting = false
					t.report(to, r)
				})
			}
		})
	}
}

// offerSnapshot queues a snapshot for a peer, or reports its failure.
func (t *Transport) offerSnapshot(to uint64, r *remote, m *raftpb.Message) {
	x := &crate{message: m}
	t.net.Tell("server %d has a snapshot for server %d", t.ID, to)
	if r == nil || !r.snapshots.Offer(x) {
		t.shipped(to, x, false)
		return
	}
	t.ship(to)
}

// ship sends the next snapshot to a peer, on a separate connection.
func (t *Transport) ship(to uint64) {
	r := t.remote(to)
	if x, any := r.snapshots.Begin(); any {
		t.dialFor(peering.Snapshots, t.net.All[to-1], x)
	}
}

// shipped informs the replica about the result of a snapshot.
func (t *Transport) shipped(to uint64, x *crate, ok bool) {
	switch {
	case x.told:
		t.net.Violate("sending", "server %d tells again what became of a snapshot for server %d", t.ID, to)
	case ok && !x.came:
		t.net.Violate("sending", "server %d takes it that server %d has a snapshot, and that has not", t.ID, to)
	case !ok:
		t.net.Stats.BrokenOff++
	}
	x.told = true
	t.net.Tell("server %d learns that a snapshot has come to server %d: %t", t.ID, to, ok)
	t.h.SnapshotSent(to, ok)
}

// arrive processes a message that arrived on the newest connection of a peer.
func (t *Transport) arrive(c *conn, data []byte) {
	if !t.h.Up() || !c.current {
		return
	}
	m := new(raftpb.Message)
	if err := proto.Unmarshal(data, m); err != nil {
		t.net.Violate("codec", "a message of server %d cannot be read: %v", c.ends[dialler].ID, err)
		return
	}
	t.h.Receive(c.ends[dialler].ID, m)
}

// unpack starts to send the snapshot of a connection: first a head, then the data.
func (t *Transport) unpack(c *conn) {
	m := proto.CloneOf(c.crate.message)
	data := m.Snapshot.Data
	m.Snapshot.Data = nil
	head, err := proto.Marshal(m)
	if err != nil {
		t.net.Violate("codec", "a snapshot of server %d cannot be written: %v", t.ID, err)
		return
	}
	other := c.ends[acceptor]
	c.say(acceptor, func() {
		c.arrival = peering.NewArrival(len(data))
		other.unload(c, head)
		t.pour(c, head, data)
	})
}

// pour sends the data of a snapshot. It sends each part when the previous one has arrived.
func (t *Transport) pour(c *conn, head, data []byte) {
	if len(data) == 0 {
		return
	}
	other := c.ends[acceptor]
	t.net.Carry(other.Endpoint(), t.Endpoint(), func() {
		t.net.After(t.Narrow+t.net.Rand.Int64N(partTime), func() {
			t.atConn(c, dialler, func() {
				part := data[:min(len(data), partBytes)]
				c.say(acceptor, func() {
					if err := c.arrival.Add(part); err != nil {
						t.net.Violate("codec", "%v", err)
					}
					other.unload(c, head)
					t.pour(c, head, data[len(part):])
				})
			})
		})
	}, func() { t.atConn(c, dialler, func() { c.close(dialler) }) })
}

// unload delivers a complete snapshot, and reports that to the sender.
func (t *Transport) unload(c *conn, head []byte) {
	if !c.arrival.Whole() || !c.current {
		return
	}
	m := new(raftpb.Message)
	if err := proto.Unmarshal(head, m); err != nil {
		t.net.Violate("codec", "a snapshot for server %d cannot be read: %v", t.ID, err)
		return
	}
	m.Snapshot.Data = c.arrival.Data()
	if c.crate.came = bytes.Equal(m.Snapshot.Data, c.crate.message.Snapshot.Data); !c.crate.came {
		t.net.Violate("sending", "server %d is given a snapshot of %d bytes, %d of which were sent", t.ID, len(c.crate.message.Snapshot.Data), len(m.Snapshot.Data))
	}
	from := c.ends[dialler]
	t.h.Receive(from.ID, m)
	c.say(dialler, func() {
		from.remote(t.ID).snapshots.Taken()
		c.close(dialler)
	})
}

// unship handles the end of a connection for a snapshot.
func (t *Transport) unship(c *conn) {
	to := c.ends[acceptor].ID
	r := t.remote(to)
	if c.up {
		c.up = false
		r.known.Part()
	}
	r.bulk = nil
	t.shipped(to, c.crate, r.snapshots.End())
	t.ship(to)
}
