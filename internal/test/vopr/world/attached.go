package world

import (
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/queue"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

const (
	// heartbeat and election are those of a replica with a tick of 10 ms: 5 ticks, and 4
	// heartbeats.
	heartbeat = 5 * tick
	election  = 4 * heartbeat
)

// outbox returns an empty outbox for a stream. Its limits are lower than those of a real server, so
// that runs reach them. With a limited state, a server may refuse all requests of a session at the
// same time, and again whenever the client resends them. For such plans the outbox is large enough
// for all these answers, as in a real server.
func (w *World) outbox() stream.Outbox {
	limits := stream.Limits{Frame: 16, HighWater: 64, Most: 256}
	if w.Plan.Limits {
		limits.Most = 2048
	}
	return stream.NewOutbox(limits)
}

// attached is a stream at the server to which the client connected. It corresponds to Attach of
// internal/service/server, and uses the same state machines.
type attached struct {
	s      *Server
	life   int
	call   *call
	caller stream.Caller
	asked  bool
	names  *stream.Sessions
	left   bool  // the stream has ended at this server
	astray int64 // number of ticks for which the server could not serve it

	in []*api.ClientFrame // not read yet

	// For a stream that this server serves. The replica identifies it by number.
	number uint64
	served bool // its requests are accepted, and its replies are sent
	box    stream.Outbox
	line   queue.Line[*attached]
	ready  []registry.Command // read, but not yet in the queue
	told   int                // number of server addresses that the client knows
	owed   int                // replies in the box that were not sent yet

	// For a stream that this server passes on.
	relay  *stream.Relay
	leader uint64
	above  *call
	below  []*api.ServerFrame // from the leader, not read yet
	shut   bool               // the leader has ended the stream
}

// attach accepts a stream.
func (s *Server) attach(l *call, who stream.Caller, asked bool) {
	s.w.numbers++
	a := &attached{s: s, life: s.Life, call: l, caller: who, asked: asked, number: s.w.numbers, names: stream.NewSessions(who), box: s.w.outbox()}
	a.line.Conn = a
	l.at = a
	l.down.room = func() {
		if s.Life == a.life {
			s.TakeAlways(a.pump)
		}
	}
	s.streams = append(s.streams, a)
	l.hear(&api.ServerFrame{Welcome: &api.Welcome{Cluster: "vopr", Server: s.ID, Version: 1}})
	s.awaitLeader(2*heartbeat, a.settle)
}

// awaitLeader calls then when a leader is known. After the time most, it calls then in any case.
func (s *Server) awaitLeader(most int64, then func()) {
	if s.Replica.Leader() != 0 || most <= 0 {
		then()
		return
	}
	life := s.Life
	s.w.After(s.clock.Real(heartbeat/5), func() {
		if s.Life == life {
			s.TakeAlways(func() { s.awaitLeader(most-heartbeat/5, then) })
		}
	})
}

// settle decides whether to serve the stream, to pass it on, or to end it.
func (a *attached) settle() {
	s := a.s
	if a.left {
		return
	}
	arrival := stream.Arrival{Caller: a.caller, Asked: a.asked, Leads: s.Replica.Leading(), Self: s.ID, Leader: s.Replica.Leader(), Relayed: s.relaying()}
	switch arrival.Way() {
	case stream.Serve:
		s.conns[a.number], a.served = a, true
		a.read()
	case stream.PassOn:
		a.passOn(arrival.Leader)
	default:
		a.dismiss(nil)
	}
}

// relaying returns the number of streams that the server passes on.
func (s *Server) relaying() (n int) {
	for _, a := range s.streams {
		if a.relay != nil {
			n++
		}
	}
	return n
}

// comes receives a frame from the network.
func (a *attached) comes(frame *api.ClientFrame) {
	a.in = append(a.in, frame)
	a.read()
}

// next returns the oldest received frame, or nil.
func (a *attached) next() *api.ClientFrame {
	if len(a.in) == 0 {
		return nil
	}
	frame := a.in[0]
	a.in = a.in[1:]
	a.call.up.took()
	return frame
}

// read processes frames of the client.
func (a *attached) read() {
	for a.served && !a.left {
		if len(a.ready) > 0 {
			if !a.s.queue.Put(&a.line, a.ready) {
				return
			}
			a.ready = nil
			a.s.Wake()
		}
		if a.box.Full() {
			return
		}
		frame := a.next()
		if frame == nil {
			return
		}
		commands, refused, farewell := stream.Commands(a.caller, a.names, frame)
		if len(refused) > 0 || farewell != nil {
			a.s.w.Violate("client", "the frame %v of client %q cannot be carried out: %v %v", frame, a.caller.Principal, refused, farewell)
			return
		}
		a.box.Note(a.s.Now(), commands)
		a.ready = commands
	}
	a.passUp()
}

// pump sends waiting replies until the client accepts no more.
func (a *attached) pump() {
	if a.relay != nil {
		a.passDown()
		return
	}
	for a.served && !a.left && !a.call.down.full() {
		frame, last := a.box.Take(a.s.Now(), a.names, func(registry.Op, registry.Code, int64) {})
		if frame != nil {
			a.owed -= len(frame.Replies)
			a.news(frame)
			a.call.hear(frame)
		} else if a.owed != 0 {
			a.s.w.Violate("stream", "server %d sends %d replies less to client %q than it was given, and the stream goes on", a.s.ID, a.owed, a.caller.Principal)
		}
		if last {
			a.served = false
			farewell, _ := a.box.Parting()
			a.dismiss(farewell)
			return
		}
		if frame == nil {
			break
		}
	}
	a.read()
}

// news adds the addresses of all servers to a frame, if they have changed.
func (a *attached) news(frame *api.ServerFrame) {
	var servers []string
	for _, m := range a.s.Replica.Registry().Members() {
		if m.Standing != registry.Removed && m.ClientAddress != "" {
			servers = append(servers, m.ClientAddress)
		}
	}
	if len(servers) != a.told {
		a.told, frame.Servers = len(servers), servers
	}
}

// depose ends the stream because the server no longer leads.
func (a *attached) depose() {
	delete(a.s.conns, a.number)
	a.box.Depose()
	a.pump()
}

// deliver adds a reply of the replica to the outbox.
func (a *attached) deliver(o registry.Outcome) {
	a.owed++
	a.box.Deliver([]registry.Outcome{o})
	if a.box.Cut() {
		a.s.w.Tell("server %d cuts off client %q", a.s.ID, a.caller.Principal)
		a.s.w.Stats.CutOff++
		a.call.Reset()
		a.leave()
	}
}

// takeRequests passes requests of clients to the replica, within limits, as internal/service/node does.
func (s *Server) takeRequests() {
	for taken := 0; taken < queue.Sitting; {
		l, commands := s.queue.Take()
		if l == nil {
			return
		}
		taken += len(commands)
		s.turns.arrive(s, commands)
		s.Replica.Submit(s.TellTime(), l.Conn.number, commands)
		s.w.trace.submitted(s, commands)
		l.Conn.read()
	}
	s.Wake()
}

// passOn passes the stream on to the leader.
func (a *attached) passOn(leader uint64) {
	s := a.s
	s.w.Stats.Relayed++
	if a.caller.Vouched {
		s.w.Violate("relay", "server %d passes on a stream that was passed on to it", s.ID)
	}
	r := stream.NewRelay(s.Now(), leader)
	a.relay, a.leader = &r, leader
	who := a.caller
	who.Vouched = true
	a.above = &call{w: s.w, server: s.w.Servers[leader-1], take: func(f func()) {
		if s.Life == a.life {
			s.TakeAlways(f)
		}
	}}
	a.above.heard = func(frame *api.ServerFrame) {
		a.below = append(a.below, frame)
		a.passDown()
	}
	a.above.ended = func(orderly bool) {
		if a.shut = orderly; !orderly {
			a.relay.Broken()
		}
		a.passDown()
	}
	a.above.up.room = func() { s.TakeAlways(a.passUp) }
	a.above.open(s.Endpoint(), who, a.asked)
	a.look()
}

// look repeatedly informs the relay who leads.
func (a *attached) look() {
	s := a.s
	if a.left || s.Life != a.life {
		return
	}
	a.relay.Look(s.Now(), s.Replica.Leader())
	pause := int64(election)
	if due := a.relay.Due(s.Now()); due > 0 {
		pause = min(pause, due)
	}
	if a.unrelay() {
		return
	}
	s.w.After(s.clock.Real(pause), func() {
		if s.Life == a.life {
			s.TakeAlways(a.look)
		}
	})
}

// passUp forwards frames of the client to the leader.
func (a *attached) passUp() {
	for !a.left && a.relay != nil && a.relay.Welcomed() && !a.above.up.full() {
		frame := a.next()
		if frame == nil {
			return
		}
		passed, refused := stream.Up(a.names, frame)
		if refused != nil {
			a.call.hear(refused)
		}
		if passed != nil {
			a.above.send(passed)
		}
	}
}

// passDown forwards frames of the leader to the client.
func (a *attached) passDown() {
	for !a.left && len(a.below) > 0 && !a.relay.Over() && !a.call.down.full() {
		frame := a.below[0]
		a.below = a.below[1:]
		a.above.down.took()
		if frame = a.relay.Down(a.names, frame); frame != nil {
			a.call.hear(frame)
		}
	}
	if a.shut && len(a.below) == 0 {
		a.relay.Closed()
	}
	a.unrelay()
	a.passUp()
}

// unrelay ends the stream if the relay requires it, and reports whether it does.
func (a *attached) unrelay() bool {
	if a.left || !a.relay.Over() {
		return a.left
	}
	a.above.close()
	if farewell, told := a.relay.Farewell(); !told {
		a.dismiss(farewell)
		return true
	}
	a.part(nil)
	return true
}

// dismiss sends a farewell and ends the stream. If farewell is nil, the reason is that this server
// does not lead.
func (a *attached) dismiss(farewell *api.Farewell) {
	if farewell != nil {
		a.part(&api.ServerFrame{Farewell: farewell})
		return
	}
	a.s.awaitLeader(2*heartbeat, func() {
		leader, farewell := a.s.Replica.Leader(), &api.Farewell{Code: api.Code_CODE_NOT_LEADER}
		if leader != 0 && leader <= uint64(len(a.s.w.Servers)) {
			farewell.Leader = a.s.w.Servers[leader-1].said().ClientAddress
		}
		a.part(&api.ServerFrame{Farewell: farewell})
	})
}

// part ends the stream in order, with or without a last frame.
func (a *attached) part(frame *api.ServerFrame) {
	if a.left {
		return
	}
	a.forget()
	if frame != nil {
		a.call.hear(frame)
	}
	a.call.down.finish(func() { a.call.end(true) })
}

// leave ends the stream after the other side has closed it.
func (a *attached) leave() {
	if a.left {
		return
	}
	a.forget()
	if a.above != nil {
		a.above.close()
	}
}

// strays checks that no stream stays at a server that does not lead. A stream may stay if the
// server passes it on to the leader, or if the client does not read its frames.
func (s *Server) strays() {
	for _, a := range s.streams {
		right := a.served && s.Replica.Leading() || a.relay != nil && a.leader == s.Replica.Leader()
		if right || a.call.down.full() {
			a.astray = 0
			continue
		}
		if a.astray++; a.astray*tick > 3*election {
			s.w.Violate("stream", "server %d keeps the stream of %q for %d ms, and does not lead or pass it on to the leader", s.ID, a.caller.Principal, 3*election/ms)
		}
	}
}

func (a *attached) forget() {
	a.left = true
	delete(a.s.conns, a.number)
	a.s.streams = slices.DeleteFunc(a.s.streams, func(other *attached) bool { return other == a })
}
