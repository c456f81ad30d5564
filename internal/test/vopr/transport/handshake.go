package transport

import (
	"github.com/conclave-io/conclave/internal/service/peering"
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

// introduced decodes an introduction that was received.
func (t *Transport) introduced(frame []byte) (h peering.Hello, ok bool) {
	h, err := peering.DecodeHello(frame)
	if err != nil {
		t.net.Violate("codec", "server %d cannot read an introduction: %v", t.ID, err)
	}
	return h, err == nil
}

// remote returns a server's record of another server.
func (t *Transport) remote(id uint64) *remote {
	r := t.remotes[id]
	if r == nil {
		r = &remote{
			backoff: peering.Backoff{Min: backoffMin, Max: backoffMax, Refused: refusedPause, Lasting: backoffMax + dialTimeout},
			out:     peering.NewOutgoing[*letter, replica.Digest](bounds),
		}
		t.remotes[id] = r
	}
	return r
}

// Acquaint makes a server dial all other servers that it knows, and close the connections with
// removed ones.
func (t *Transport) Acquaint() {
	for _, other := range t.net.All {
		switch r := t.remotes[other.ID]; {
		case other == t:
		case t.h.Gone(other.ID):
			t.hangUpOn(other)
		case t.h.Knows(other.ID) && (r == nil || r.dialled == nil):
			t.dialFor(peering.Messages, other, nil)
		}
	}
}

// hangUpOn closes all connections with a server that was removed.
func (t *Transport) hangUpOn(other *Transport) {
	for _, c := range t.connsWith(other) {
		if end := c.at(t); c.alive(end) {
			c.close(end)
		}
	}
}

// dialFor connects to another server. If the attempt fails or the connection ends, it retries for
// as long as the other server is a peer. A connection for a snapshot is not retried: then the
// snapshot has failed.
func (t *Transport) dialFor(ln peering.Lane, other *Transport, x *crate) {
	c := &conn{lane: ln, crate: x, ends: [2]*Transport{t, other}, lives: [2]int{t.Life, other.Life}, begun: t.net.Now, heard: [2]int64{t.net.Now, t.net.Now}}
	if ln == peering.Snapshots {
		t.remote(other.ID).bulk = c
	} else {
		t.remote(other.ID).dialled = c
	}
	if t.h.Directory() == 0 { // it has no directory yet
		t.dialAgain(c, false)
		return
	}
	if !other.On || other.h.Directory() == 0 {
		c.tell(dialler)
	} else {
		frame := t.h.Hello(other.ID).Append(nil)
		c.say(acceptor, func() {
			c.there = true
			other.greeted(c, frame)
		})
	}
	giveUp := func(unless *bool) func() {
		return func() {
			t.atConn(c, dialler, func() {
				if !*unless {
					c.close(dialler)
				}
			})
		}
	}
	t.net.After(t.Clock.Real(dialTimeout), giveUp(&c.there))
	t.net.After(t.Clock.Real(handshakeTime), giveUp(&c.up))
}

// atConn makes a server do something for a connection that is open at its end.
func (t *Transport) atConn(c *conn, end int, do func()) {
	if c.alive(end) {
		t.TakeAlways(func() {
			if c.alive(end) {
				do()
			}
		})
	}
}

// dialAgain retries after a pause.
func (t *Transport) dialAgain(c *conn, refused bool) {
	other := c.ends[acceptor]
	pause := t.remote(other.ID).backoff.Next(t.net.Now-c.begun, refused, t.net.Rand.Int64N)
	life := t.Life
	t.net.After(t.Clock.Real(pause), func() {
		if t.Life == life {
			t.TakeAlways(func() {
				if r := t.remote(other.ID); r.dialled == c {
					r.dialled = nil
					t.Acquaint()
				}
			})
		}
	})
}

// greeted processes the introduction of a server that has dialled.
func (t *Transport) greeted(c *conn, frame []byte) {
	h, ok := t.introduced(frame)
	if !ok {
		return
	}
	examiner := t.h.Examiner(h.Server)
	if refusal := examiner.Examine(h); refusal != nil {
		t.refuse(c, refusal)
		return
	}
	if !t.h.Knows(h.Server) { // Examine has checked that this server may accept it
		t.h.Accept(h.Server)
		t.Acquaint()
	}
	t.admit(c, &peering.Newcomer[*conn]{Lane: c.lane, Conn: c, Hello: h, At: t.Now()}, t.net.Now+handshakeTime*5/6)
}

// admit makes a connection the current one with its peer, or refuses it.
func (t *Transport) admit(c *conn, n *peering.Newcomer[*conn], until int64) {
	r := t.remote(n.Hello.Server)
	switch admission := r.known.Admit(t.ID, n, r.heard, t.net.Now > until); admission.Step {
	case peering.Reject:
		if admission.Refusal.SharesData() {
			t.outlived(c)
		}
		t.refuse(c, admission.Refusal)
	case peering.Replace:
		r.known.Inbound(c.lane).close(acceptor)
		t.admit(c, n, until)
	case peering.Wait:
		t.net.After(t.Clock.Real(pingInterval), func() {
			t.atConn(c, acceptor, func() { t.admit(c, n, until) })
		})
	case peering.Admitted:
		t.admitted(c, n.Hello)
		if d := r.dialled; admission.Redial && d != nil && d.gone == [2]bool{true, true} {
			r.dialled = nil
			t.Acquaint()
		}
	}
}

func (t *Transport) admitted(c *conn, h peering.Hello) {
	c.current, c.uids[acceptor], c.nonces[acceptor] = true, h.UID, h.Nonce
	t.alike(c)
	t.net.Stats.Connected++
	frame := t.h.Hello(h.Server).Append(nil)
	c.say(dialler, func() { c.ends[dialler].welcomed(c, frame) })
	t.h.Met(h)
	c.beat(acceptor)
}

// refuse refuses the connection of another server.
func (t *Transport) refuse(c *conn, refusal *peering.Refusal) {
	frame := refusal.Append(nil)
	c.say(dialler, func() { c.ends[dialler].refused(c, frame) })
}

func (t *Transport) refused(c *conn, frame []byte) {
	refusal, err := peering.DecodeRefusal(frame)
	if err != nil {
		t.net.Violate("codec", "server %d cannot read a refusal: %v", t.ID, err)
		return
	}
	by := c.ends[acceptor].ID
	r := t.remote(by)
	c.gone = [2]bool{true, true}
	if refusal.Code == peering.LevelUnknown {
		c.ends[acceptor].h.Replaced(refusal.Text) // an operator reads the text in the log of this server
	}
	if c.lane == peering.Snapshots {
		t.unship(c)
		return
	}
	c.outdated = refusal.Code == peering.LevelUnknown
	t.dialAgain(c, refusal.Final())
	if !r.known.Refused(refusal) || refusal.Code == peering.LevelUnknown && t.h.Replaced(refusal.Text) {
		return
	}
	t.h.Refused(by, refusal)
}

// welcomed processes the introduction of the server that was dialled.
func (t *Transport) welcomed(c *conn, frame []byte) {
	peer := c.ends[acceptor].ID
	h, ok := t.introduced(frame)
	if !ok {
		return
	}
	r := t.remote(peer)
	if t.h.Examiner(peer).Recognise(peer, h) != nil || !r.known.Join(c.lane, h, t.Now()) {
		c.close(dialler)
		return
	}
	c.uids[dialler], c.nonces[dialler] = h.UID, h.Nonce
	if c.lane == peering.Messages {
		t.h.Welcomed(peer)
	}
	if c.lane == peering.Snapshots {
		c.up = true
	} else {
		t.connected(c, true)
	}
	t.alike(c)
	t.h.Met(h)
	c.beat(dialler)
	if c.lane == peering.Snapshots {
		t.unpack(c)
	}
}

// alike checks that both connections with a peer are with the same directory and the same process.
func (t *Transport) alike(c *conn) {
	here := c.at(t)
	for _, other := range t.connsWith(c.ends[1-here]) {
		mine := other.at(t)
		switch {
		case !other.up && mine == dialler:
		case other.uids[mine] != c.uids[here]:
			t.net.Violate("connection", "server %d is connected with two directories of one server: %d and %d", t.ID, other.uids[mine], c.uids[here])
		case other.nonces[mine] != c.nonces[here]:
			t.net.Violate("copy", "server %d is connected with two processes that have the data of server %d: %x and %x", t.ID, c.ends[1-here].ID, other.nonces[mine], c.nonces[here])
		}
	}
}

// outlived checks, when a newcomer is refused as a copy, that the process that is connected was alive
// when the newcomer dialled.
func (t *Transport) outlived(c *conn) {
	t.net.Stats.CopiesRefused++
	for _, other := range t.connsWith(c.ends[dialler]) {
		far := 1 - other.at(t)
		process, life := other.ends[far], other.lives[far]
		if ended, over := process.ended[life]; other.counts(1-far) && over && ended < c.begun {
			t.net.Violate("copy", "server %d refuses a process of server %d that started at %d ms, because of one that ended at %d ms", t.ID, process.ID, c.begun/ms, ended/ms)
		}
	}
}

// again processes a repeated introduction of a peer.
func (t *Transport) again(c *conn, frame []byte) {
	h, ok := t.introduced(frame)
	if !ok || !c.current {
		return
	}
	if err := t.remote(h.Server).known.Again(h.Server, h); err != nil {
		c.close(acceptor)
		return
	}
	t.h.Met(h)
}
