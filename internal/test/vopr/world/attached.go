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
// internal/service/attach, and uses the same state machines.
type attached struct {
	s      *Server
	life   int
	call   *call
	now    stream.Life
	looks  int // number of looks at its life so far
	names  *stream.Sessions
	left   bool  // the stream has ended at this server
	astray int64 // number of ticks for which the server could not serve it

	in []*api.ClientFrame // not read yet

	// For a stream that this server serves. The replica identifies it by number.
	number uint64
	box    stream.Outbox
	line   queue.Line[*attached]
	ready  []registry.Command // read, but not yet in the queue
	told   int                // number of server addresses that the client knows
	owed   int                // replies in the box that were not sent yet

	// For a stream that this server passes on.
	above    *call
	below    []*api.ServerFrame // from the leader, not read yet
	welcomed bool               // the leader has accepted the stream
	shut     bool               // the leader has ended the stream
}

// attach accepts a stream.
func (s *Server) attach(l *call, who stream.Caller, asked bool) {
	s.w.numbers++
	a := &attached{
		s: s, life: s.Life, call: l, number: s.w.numbers, names: stream.NewSessions(who), box: s.w.outbox(),
		now: stream.Life{Heartbeat: heartbeat, Election: election, Caller: who, Asked: asked},
	}
	a.line.Conn = a
	l.at = a
	l.down.Room = func() {
		if s.Life == a.life {
			s.TakeAlways(a.pump)
		}
	}
	s.streams = append(s.streams, a)
	l.hear(&api.ServerFrame{Welcome: &api.Welcome{Cluster: "vopr", Server: s.ID, Version: 1}})
	a.look()
}

// look moves the stream on.
func (a *attached) look() {
	s := a.s
	if a.left {
		return
	}
	before := a.now.Phase()
	again := a.now.Look(s.Now(), stream.Sight{Leads: s.Replica.Leading(), Self: s.ID, Leader: s.Replica.Leader(), Relayed: s.relaying(), Dismissal: s.dismissal})
	a.turnsTo(before)
	if again == 0 || a.left {
		return
	}
	a.looks++
	number := a.looks
	s.w.After(s.Clock.Real(again), func() {
		if s.Life == a.life {
			s.TakeAlways(func() {
				if a.looks == number {
					a.look()
				}
			})
		}
	})
}

// turnsTo carries out the phase of the stream, if it was another before.
func (a *attached) turnsTo(before stream.Phase) {
	phase := a.now.Phase()
	if phase == before {
		return
	}
	if before == stream.Passing {
		a.above.close()
	}
	switch phase {
	case stream.Serving:
		a.s.conns[a.number] = a
		a.read()
	case stream.Passing:
		a.passOn(a.now.Leader())
	case stream.Gone:
		a.part(a.now.Farewell())
	}
}

// serves reports whether requests are accepted, and replies are sent.
func (a *attached) serves() bool { return a.now.Phase() == stream.Serving && !a.left }

// passes reports whether the stream is passed on.
func (a *attached) passes() bool { return a.now.Phase() == stream.Passing && !a.left }

// dismissal is the farewell of a server that does not lead.
func (s *Server) dismissal(leader uint64) *api.Farewell {
	farewell := &api.Farewell{Code: api.Code_CODE_NOT_LEADER}
	if leader != 0 && leader <= uint64(len(s.w.Servers)) {
		farewell.Leader = s.w.Servers[leader-1].said().ClientAddress
	}
	return farewell
}

// relaying returns the number of streams that the server passes on.
func (s *Server) relaying() (n int) {
	for _, a := range s.streams {
		if a.passes() {
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
	a.call.up.Took()
	return frame
}

// read processes frames of the client.
func (a *attached) read() {
	for a.serves() {
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
		commands, refused, farewell := stream.Commands(a.now.Caller, a.names, frame)
		if len(refused) > 0 || farewell != nil {
			a.s.w.Violate("client", "the frame %v of client %q cannot be carried out: %v %v", frame, a.now.Caller.Principal, refused, farewell)
			return
		}
		a.box.Note(a.s.Now(), commands)
		a.ready = commands
	}
	a.passUp()
}

// pump sends waiting replies until the client accepts no more.
func (a *attached) pump() {
	if a.passes() {
		a.passDown()
		return
	}
	for a.serves() && !a.call.down.Full() {
		frame, last := a.box.Take(a.s.Now(), a.names, func(registry.Op, registry.Code, int64) {})
		if frame != nil {
			a.owed -= len(frame.Replies)
			a.news(frame)
			a.call.hear(frame)
		} else if a.owed != 0 {
			a.s.w.Violate("stream", "server %d sends %d replies less to client %q than it was given, and the stream goes on", a.s.ID, a.owed, a.now.Caller.Principal)
		}
		if last {
			a.change(func() { a.now.End(a.box.Parting()) })
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
		a.s.w.Tell("server %d cuts off client %q", a.s.ID, a.now.Caller.Principal)
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
		s.turns.Arrive(commands)
		s.Replica.Submit(s.TellTime(), l.Conn.number, commands)
		s.w.trace.Submitted(s.observed(), commands)
		l.Conn.read()
	}
	s.Wake()
}

// passOn passes the stream on to the leader.
func (a *attached) passOn(leader uint64) {
	s := a.s
	s.w.Stats.Relayed++
	if a.now.Caller.Vouched {
		s.w.Violate("relay", "server %d passes on a stream that was passed on to it", s.ID)
	}
	who := a.now.Caller
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
		if a.shut = orderly; orderly {
			a.passDown()
		} else {
			a.tellRelay((*stream.Relay).Broken)
		}
	}
	a.above.up.Room = func() { s.TakeAlways(a.passUp) }
	a.above.open(s.Endpoint(), who, a.now.Asked)
}

// tellRelay tells the relay what became of it.
func (a *attached) tellRelay(change func(*stream.Relay)) {
	a.change(func() { a.now.Pass(change) })
}

// change changes the life of the stream, and moves it on if it ends.
func (a *attached) change(change func()) {
	before := a.now.Phase()
	change()
	if a.turnsTo(before); a.now.Phase() == stream.Leaving {
		a.look()
	}
}

// passUp forwards frames of the client to the leader, once that has accepted the stream.
func (a *attached) passUp() {
	for a.passes() && a.welcomed && !a.above.up.Full() {
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
	for a.passes() && len(a.below) > 0 && !a.call.down.Full() {
		frame := a.below[0]
		a.below = a.below[1:]
		a.above.down.Took()
		a.tellRelay(func(r *stream.Relay) { frame, a.welcomed = r.Down(a.names, frame), r.Welcomed() })
		if frame != nil {
			a.call.hear(frame)
		}
	}
	if a.shut && len(a.below) == 0 {
		a.tellRelay((*stream.Relay).Closed)
	}
	a.passUp()
}

// part ends the stream in order, with or without a farewell.
func (a *attached) part(farewell *api.Farewell) {
	a.forget()
	if farewell != nil {
		a.call.hear(&api.ServerFrame{Farewell: farewell})
	}
	a.call.down.Finish(func() { a.call.end(true) })
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
		right := a.serves() && s.Replica.Leading() || a.passes() && a.now.Leader() == s.Replica.Leader()
		if right || a.call.down.Full() {
			a.astray = 0
			continue
		}
		if a.astray++; a.astray*tick > 3*election {
			s.w.Violate("stream", "server %d keeps the stream of %q for %d ms, and does not lead or pass it on to the leader", s.ID, a.now.Caller.Principal, 3*election/ms)
		}
	}
}

func (a *attached) forget() {
	a.left = true
	delete(a.s.conns, a.number)
	a.s.streams = slices.DeleteFunc(a.s.streams, func(other *attached) bool { return other == a })
}
