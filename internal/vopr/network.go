package vopr

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/internal/line"
	"github.com/conclave-io/conclave/service/api"
	"github.com/conclave-io/conclave/service/convert"
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
// sends again, and after maxStall it is lost with the connection. Messages may overtake
// each other, which a stream does not let them; servers and clients promise to bear it.
type link struct {
	number  uint64 // by which the server knows it
	stream  uint64 // by which the client does
	client  *client
	server  *server                       // that serves it
	via     *server                       // that relays it to that one, or nil
	life    int                           // of via
	relayed bool                          // the client asked for that
	told    int                           // how many addresses of servers the client was told of
	closed  bool                          // for the client
	secrets map[registry.SessionID][]byte // that its requests had, by session
}

const (
	stallStep = 150 * ms
	maxStall  = 20 // steps
)

// carry brings something over a link, in one direction. broken is called if the way is
// blocked for so long that the connection breaks.
func (w *world) carry(from, to endpoint, deliver, broken func()) {
	w.carryOn(from, to, deliver, broken, 0)
}

func (w *world) carryOn(from, to endpoint, deliver, broken func(), stalled int) {
	w.after(w.delay(), func() {
		switch {
		case !w.blocked(from, to):
			deliver()
		case stalled < maxStall:
			w.after(stallStep, func() { w.carryOn(from, to, deliver, broken, stalled+1) })
		default:
			broken()
		}
	})
}

// dial asks the server at an address to take the client.
func (c *client) dial(o line.Output) {
	c.w.numbers++
	l := &link{number: c.w.numbers, stream: o.Stream, client: c, server: c.w.serverAt(o.Address), relayed: o.Relayed, secrets: make(map[registry.SessionID][]byte)}
	c.links = append(c.links, l)
	s := l.server
	if s == nil { // it is on record, and has not come yet
		l.closed = true
		c.later(c.w.delay(), func() { c.ended(l) })
		return
	}
	life := s.life
	c.w.carry(c.endpoint(), s.endpoint(), func() {
		switch {
		case s.life != life || !s.up():
			l.reset()
		default:
			s.receive(func() { s.welcome(l) })
		}
	}, l.timeOut)
}

// serverAt returns the server that takes clients at an address, or nil.
func (w *world) serverAt(address string) *server {
	for _, s := range w.servers {
		if s.said().ClientAddress == address {
			return s
		}
	}
	return nil
}

// welcome takes a client. One that cannot reach the leader is passed on.
func (s *server) welcome(l *link) {
	l.down(&api.ServerFrame{Welcome: &api.Welcome{Cluster: "vopr", Server: s.id, Version: 1}})
	leader := s.replica.Leader()
	switch {
	case s.replica.Leading():
		s.links = append(s.links, l)
	case l.relayed && leader != 0 && leader != s.id:
		s.relay(l, s.w.servers[leader-1])
	default:
		l.farewell(leader)
	}
}

// relay passes the stream of a client on to the leader.
func (s *server) relay(l *link, leader *server) {
	l.via, l.life, l.server = s, s.life, leader
	s.w.stats.Relayed++
	s.relays = append(s.relays, l)
	life := leader.life
	s.w.carry(s.endpoint(), leader.endpoint(), func() {
		if leader.life != life {
			return
		}
		leader.receive(func() {
			if leader.replica.Leading() {
				leader.links = append(leader.links, l)
			} else {
				l.farewell(leader.replica.Leader())
			}
		})
	}, l.unrelay)
}

// dropRelays ends the streams that this server passes on to one that does not lead any
// more, as far as it knows.
func (s *server) dropRelays() {
	s.relays = slices.DeleteFunc(s.relays, func(l *link) bool {
		if l.closed || l.via != s || l.server.id == s.replica.Leader() {
			return l.closed || l.via != s
		}
		l.unrelay()
		return true
	})
}

// unrelay ends a stream that is relayed: the server that does so tells the client.
func (l *link) unrelay() {
	if l.via == nil {
		return
	}
	l.server.forget(l)
	if l.server, l.via = l.via, nil; l.server.up() {
		l.farewell(l.server.replica.Leader())
	}
}

// forget takes a stream off those that a server serves.
func (s *server) forget(l *link) {
	s.links = slices.DeleteFunc(s.links, func(other *link) bool { return other == l })
}

// submit carries out the requests of a frame.
func (s *server) submit(l *link, frame *api.ClientFrame) {
	if !slices.Contains(s.links, l) {
		l.reset() // it left, the connection is broken, or this server was deposed meanwhile
		return
	}
	commands := make([]registry.Command, 0, len(frame.GetRequests()))
	for _, req := range frame.GetRequests() {
		id := l.client.derive(req.GetSession())
		l.secrets[id] = req.GetSession()
		command, problem := convert.Command(registry.Origin{Actor: l.client.principal()}, id, req)
		if problem != "" {
			s.w.violate("client", "the request %v cannot be carried out: %s", req, problem)
			return
		}
		commands = append(commands, command)
	}
	s.turns.arrive(s, commands)
	s.replica.Submit(s.now(), l.number, commands)
}

// up brings a frame of the client to its server.
func (l *link) up(frame *api.ClientFrame) {
	l.toServer(func(s *server) { s.submit(l, frame) })
}

// toServer brings something to the server, over the one that relays.
func (l *link) toServer(f func(s *server)) {
	w, s, via, life := l.client.w, l.server, l.via, l.server.life
	arrive := func() {
		if s.life == life {
			s.receive(func() { f(s) })
		}
	}
	if via == nil {
		w.carry(l.client.endpoint(), s.endpoint(), arrive, l.timeOut)
		return
	}
	w.carry(l.client.endpoint(), via.endpoint(), func() {
		if via.life == l.life {
			w.carry(via.endpoint(), s.endpoint(), arrive, l.unrelay)
		}
	}, l.timeOut)
}

// timeOut is the end of the connection for a client that could not send.
func (l *link) timeOut() {
	l.client.receive(func() {
		if !l.closed {
			l.client.ended(l)
		}
	})
}

// reply brings an outcome to the client, and with the first the addresses of all servers.
func (l *link) reply(o registry.Outcome) {
	frame := &api.ServerFrame{Replies: []*api.Reply{convert.Reply(l.secrets[o.Session], &o)}}
	var servers []string
	for _, m := range l.server.replica.Registry().Members() {
		if m.Standing != registry.Removed && m.ClientAddress != "" {
			servers = append(servers, m.ClientAddress)
		}
	}
	if len(servers) != l.told {
		l.told, frame.Servers = len(servers), servers
	}
	l.down(frame)
}

// farewell tells the client that the server does not lead.
func (l *link) farewell(leader uint64) {
	farewell := &api.Farewell{Code: api.Code_CODE_NOT_LEADER}
	if leader != 0 && leader <= uint64(len(l.client.w.servers)) {
		farewell.Leader = l.client.w.servers[leader-1].said().ClientAddress
	}
	l.down(&api.ServerFrame{Farewell: farewell})
}

// down brings a frame to the client.
func (l *link) down(frame *api.ServerFrame) {
	l.toClient(func(c *client) {
		c.hears(frame)
		c.step(line.Input{Kind: line.Received, Stream: l.stream, Frame: frame})
	})
}

// ping asks the server at the other end of the stream for a sign of life.
func (l *link) ping() {
	w, s := l.client.w, l.server
	if l.via != nil {
		s = l.via
	}
	life := s.life
	w.carry(l.client.endpoint(), s.endpoint(), func() {
		if s.life == life {
			s.receive(func() {
				l.toClient(func(c *client) { c.step(line.Input{Kind: line.Pong, Stream: l.stream}) })
			})
		}
	}, func() {})
}

var errReset = errors.New("connection reset")

// reset tells the client that the server is not there.
func (l *link) reset() {
	l.toClient(func(c *client) { c.ended(l) })
}

// ended is the news that a stream has ended.
func (c *client) ended(l *link) {
	l.closed = true
	c.links = slices.DeleteFunc(c.links, func(other *link) bool { return other == l })
	c.step(line.Input{Kind: line.Ended, Stream: l.stream, Err: errReset})
}

// toClient brings something to the client. A server that cannot send forgets the client,
// which finds out when it sends.
func (l *link) toClient(f func(c *client)) {
	c, w, s, via := l.client, l.client.w, l.server, l.via
	arrive := func() {
		c.receive(func() {
			if !l.closed {
				f(c)
			}
		})
	}
	if via == nil {
		w.carry(s.endpoint(), c.endpoint(), arrive, func() { s.forget(l) })
		return
	}
	w.carry(s.endpoint(), via.endpoint(), func() {
		if via.life == l.life {
			w.carry(via.endpoint(), c.endpoint(), arrive, func() { s.forget(l) })
		}
	}, l.unrelay)
}

// close ends a link on the client's side. What it sent may still arrive.
func (l *link) close() {
	if l.closed { // or there was no server
		return
	}
	l.closed = true
	l.toServer(func(s *server) { s.forget(l) })
}
