package transport

import (
	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
)

// remote is a server's record of another server and of the connections with it.
type remote struct {
	known   peering.Peer[*conn]
	backoff peering.Backoff
	dialled *conn  // the newest that this server dialled
	bulk    *conn  // the connection for a snapshot, or nil
	heard   uint64 // number of frames that arrived on all of them

	out       peering.Outgoing[*letter, replica.Digest]
	reporting bool // when the next loss may be reported
	snapshots peering.Shipping[*crate]
	post      post
}

// conn is a connection that one server dialled to another. Messages travel only from the dialler to
// the other end. Each message may be lost, delayed and repeated. A real connection does not do
// that, but raft tolerates it. Frames of a handshake, and parts of a snapshot, arrive in order, or
// the connection breaks.
type conn struct {
	lane    peering.Lane
	ends    [2]*Transport // the dialler is first
	lives   [2]int
	gone    [2]bool     // the end has closed it, or its process has ended
	heard   [2]int64    // when something last arrived at that end
	said    [2][]func() // ordered frames in transit to that end
	uids    [2]uint64   // the UID of the directory that the other end sent
	nonces  [2]uint64   // the nonce that the other end sent
	begun   int64
	there   bool // the introduction of the dialler has arrived
	up      bool // for the dialler: the handshake has ended
	current bool // for the other end: this connection counts

	flying  int  // messages that the other end has not processed
	stalled bool // the dialler waits before it sends more

	outdated bool // it was refused because of the level

	crate   *crate // of a connection for a snapshot
	arrival peering.Arrival
}

const (
	dialler = iota
	acceptor
)

// at returns the index of the end that belongs to a server.
func (c *conn) at(t *Transport) int {
	if c.ends[dialler] == t {
		return dialler
	}
	return acceptor
}

// alive reports whether an end still processes frames of the connection.
func (c *conn) alive(end int) bool {
	t := c.ends[end]
	return !c.gone[end] && t.On && t.Life == c.lives[end]
}

// say sends something to the other end, in order. It may fail to arrive only if the connection
// breaks.
func (c *conn) say(to int, take func()) {
	from, other := c.ends[1-to], c.ends[to]
	c.said[to] = append(c.said[to], take)
	from.net.Carry(from.Endpoint(), other.Endpoint(), func() {
		first := c.said[to][0]
		c.said[to] = c.said[to][1:]
		if c.alive(to) {
			other.TakeAlways(func() { c.arrives(to, first) })
		} else {
			c.tell(1 - to)
		}
	}, func() { from.atConn(c, 1-to, func() { c.close(1 - to) }) })
}

// tell informs an end that the other end has closed the connection, if it can be reached.
func (c *conn) tell(end int) {
	t, gone := c.ends[end], c.ends[1-end]
	t.net.Carry(gone.Endpoint(), t.Endpoint(), func() {
		t.atConn(c, end, func() { c.close(end) })
	}, func() {})
}

// ping sends a ping to the other end. It may be lost.
func (c *conn) ping(to int) {
	from := c.ends[1-to]
	payload := from.remote(c.ends[to].ID).known.Ping().Append(nil)
	from.net.Packet(from.Endpoint(), c.ends[to].Endpoint(), func() {
		if c.alive(to) {
			c.ends[to].Take(func() { c.arrives(to, func() { c.pinged(to, payload) }) })
		}
	}, func() {})
}

// pinged processes the content of a ping on a connection that counts.
func (c *conn) pinged(at int, payload []byte) {
	t := c.ends[at]
	ping, err := peering.DecodePing(payload)
	if err != nil {
		t.net.Violate("codec", "server %d cannot read a ping: %v", t.ID, err)
	}
	if c.counts(at) {
		t.remote(c.ends[1-at].ID).known.Pinged(ping)
	}
}

// counts reports whether an end takes what arrives as from its peer.
func (c *conn) counts(at int) bool { return at == dialler && c.up || at == acceptor && c.current }

func (c *conn) arrives(at int, take func()) {
	if !c.alive(at) {
		return
	}
	c.heard[at] = c.ends[at].net.Now
	if c.counts(at) {
		c.ends[at].remote(c.ends[1-at].ID).heard++
	}
	take()
}

// beat sends pings from one end. It closes the connection if nothing arrives.
func (c *conn) beat(end int) {
	t := c.ends[end]
	t.net.After(t.Clock.Real(pingInterval), func() {
		if !c.alive(end) {
			return
		}
		if !t.Paused {
			if t.net.Now-c.heard[end] > idleTimeout {
				t.atConn(c, end, func() { c.close(end) })
				return
			}
			c.ping(1 - end)
		}
		c.beat(end)
	})
}

// close closes a connection at one end. The other end notices if a message can reach it.
func (c *conn) close(end int) {
	if c.gone[end] {
		return
	}
	c.gone[end] = true
	c.tell(1 - end)
	t, other := c.ends[end], c.ends[1-end]
	r := t.remote(other.ID)
	switch {
	case end == acceptor && c.current:
		c.current = false
		r.known.Leave(c.lane)
	case end == dialler && c.lane == peering.Snapshots:
		t.unship(c)
	case end == dialler && c.up:
		r.known.Part()
		t.connected(c, false)
		t.h.Lost(other.ID)
		t.dialAgain(c, false)
	case end == dialler:
		t.dialAgain(c, false)
	}
}

// Stop closes all connections of a server whose process ends. If its machine is still running, it
// informs the other ends that it can reach. If its machine has lost power, the other ends notice
// that nothing arrives.
func (t *Transport) Stop() {
	told := t.net.Rand.IntN(2) == 0
	for _, other := range t.net.All {
		for _, c := range t.connsWith(other) {
			end := c.at(t)
			if c.gone[end] = true; told {
				c.tell(1 - end)
			}
		}
	}
	t.remotes = nil
	t.ended[t.Life-1] = t.net.Now // the machine has ended this life
}

// connsWith returns the connections with another server.
func (t *Transport) connsWith(other *Transport) (all []*conn) {
	r := t.remotes[other.ID]
	if r == nil {
		return nil
	}
	if r.dialled != nil {
		all = append(all, r.dialled)
	}
	if r.bulk != nil {
		all = append(all, r.bulk)
	}
	for ln := range peering.Lanes {
		if c := r.known.Inbound(ln); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// over returns the connection that can deliver messages to a peer, or nil.
func (t *Transport) over(id uint64) *conn {
	if r := t.remotes[id]; r != nil && r.dialled != nil && r.dialled.up && r.dialled.alive(dialler) {
		return r.dialled
	}
	return nil
}
