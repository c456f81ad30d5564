package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/service/registry"
)

// endpoint is a set of servers and clients, a bit for each: servers from the lowest
// bit up, clients from bit 48.
type endpoint uint64

const clientBit = 48

func (s *server) endpoint() endpoint { return 1 << (s.id - 1) }
func (c *client) endpoint() endpoint { return 1 << (clientBit + c.slot) }

const (
	allServers = endpoint(1)<<clientBit - 1
	everybody  = ^endpoint(0)
)

// cut keeps messages of some from reaching others.
type cut struct{ from, to endpoint }

func (w *world) blocked(from, to endpoint) bool {
	for _, c := range w.cuts {
		if c.from&from != 0 && c.to&to != 0 {
			return true
		}
	}
	return false
}

// sever cuts links for a while.
func (w *world) sever(d int64, cuts ...*cut) {
	w.cuts = append(w.cuts, cuts...)
	w.after(d, func() {
		w.cuts = slices.DeleteFunc(w.cuts, func(c *cut) bool { return slices.Contains(cuts, c) })
	})
}

// packet carries one message that may be lost, repeated, or overtaken. It reports
// whether the message was on its way.
func (w *world) packet(from, to endpoint, deliver func()) bool {
	if w.blocked(from, to) || w.storm != nil && w.net.IntN(5) == 0 {
		return false
	}
	copies := 1
	if w.storm != nil && w.net.IntN(8) == 0 || w.net.IntN(500) == 0 {
		copies = 2
	}
	for range copies {
		w.after(w.delay(), func() {
			if !w.blocked(from, to) {
				deliver()
			}
		})
	}
	return true
}

// delay is short mostly, and now and then long.
func (w *world) delay() int64 {
	d := 100_000 + w.net.Int64N(ms)
	switch n := w.net.IntN(200); {
	case n == 0:
		d += w.net.Int64N(100 * ms)
	case n < 4 || w.storm != nil && n < 60:
		d += w.net.Int64N(20 * ms)
	case w.storm != nil && n < 80:
		d += w.net.Int64N(300 * ms)
	}
	return d
}

// link is the stream of a client to a server. Nothing is lost on it, but it may
// take long: while the two cannot reach each other what is on its way waits, as TCP
// sends again, and after maxStall it is broken. Messages may overtake each other,
// which a stream does not let them; servers and clients promise to bear it.
type link struct {
	number   uint64
	client   *client
	server   *server
	born     int64 // the client's reading
	welcomed bool  // the client knows
	closed   bool  // for the client
}

const (
	stallStep = 150 * ms
	maxStall  = 20 // steps
)

// carry brings something over a link, in one direction.
func (w *world) carry(from, to endpoint, deliver func()) { w.carryOn(from, to, deliver, 0) }

func (w *world) carryOn(from, to endpoint, deliver func(), stalled int) {
	w.after(w.delay(), func() {
		switch {
		case !w.blocked(from, to):
			deliver()
		case stalled < maxStall:
			w.after(stallStep, func() { w.carryOn(from, to, deliver, stalled+1) })
		}
	})
}

// up brings requests of the client to its server.
func (l *link) up(commands []registry.Command) {
	s, life := l.server, l.server.life
	l.client.w.carry(l.client.endpoint(), s.endpoint(), func() {
		if s.life == life {
			s.receive(func() { s.submit(l, commands) })
		}
	})
}

// attach asks the server to take the client.
func (l *link) attach() {
	s, life := l.server, l.server.life
	l.client.w.carry(l.client.endpoint(), s.endpoint(), func() {
		switch {
		case s.life != life || !s.up():
			l.reset()
		default:
			s.receive(func() { s.welcome(l) })
		}
	})
}

func (s *server) welcome(l *link) {
	if !s.replica.Leading() {
		l.farewell(s.replica.Leader())
		return
	}
	s.links = append(s.links, l)
	l.toClient(func(c *client) { c.onWelcome(l) })
}

func (s *server) submit(l *link, commands []registry.Command) {
	if !slices.Contains(s.links, l) {
		return // it left, or this server was deposed meanwhile
	}
	s.replica.Submit(s.now(), l.number, commands)
}

// down brings a reply to the client.
func (l *link) down(o registry.Outcome) { l.toClient(func(c *client) { c.onReply(l, o) }) }

// farewell tells the client that the server does not lead.
func (l *link) farewell(leader uint64) {
	l.toClient(func(c *client) { c.onEnded(l, leader) })
}

// reset tells the client that the server is not there.
func (l *link) reset() {
	l.toClient(func(c *client) { c.onEnded(l, 0) })
}

func (l *link) toClient(f func(c *client)) {
	c := l.client
	c.w.carry(l.server.endpoint(), c.endpoint(), func() {
		c.receive(func() {
			if !l.closed {
				f(c)
			}
		})
	})
}

// close ends a link on the client's side. What it sent may still arrive.
func (l *link) close() {
	if l.closed {
		return
	}
	l.closed = true
	s := l.server
	l.client.w.carry(l.client.endpoint(), s.endpoint(), func() {
		s.receive(func() { s.links = slices.DeleteFunc(s.links, func(o *link) bool { return o == l }) })
	})
}
