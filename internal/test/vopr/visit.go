package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// visit is the stream of a client at a home. It corresponds to AttachHome of internal/service/server.
type visit struct {
	s      *server
	call   *call
	caller stream.Caller
	names  *stream.Sessions
	box    stream.Outbox
	number uint64 // the number by which the host identifies it
	in     []*api.ClientFrame
	left   bool
}

// attachHome accepts a stream of a client that uses the server as its home.
func (s *server) attachHome(l *call, who stream.Caller) {
	s.w.numbers++
	g := &visit{s: s, call: l, caller: who, number: s.w.numbers, names: stream.NewSessions(who), box: s.w.outbox()}
	l.at = g
	l.down.room = func() {
		if !g.left {
			s.takeAlways(g.pump)
		}
	}
	seat, lease := s.host.Seat()
	welcome := &api.Welcome{Cluster: "vopr", Server: s.id, Version: 1, Seat: seat[:], LeaseNs: lease}
	for _, id := range s.host.Adopted() {
		welcome.Adopted = append(welcome.Adopted, id[:])
	}
	l.hear(&api.ServerFrame{Welcome: welcome})
	s.guests = append(s.guests, g)
	if !s.host.Serving() {
		g.box.End(s.farewell())
		g.pump()
	}
}

// farewell returns a farewell with the names of the participating servers.
func (s *server) farewell() *api.Farewell {
	f := &api.Farewell{Code: api.Code_CODE_NOT_MEMBER}
	if to := s.host.Successor(); to != 0 {
		f.Heir = s.w.servers[to-1].said().ClientAddress
	}
	for _, m := range s.replica.Registry().Guarded().Members {
		f.Members = append(f.Members, s.w.servers[m.Server-1].said().ClientAddress)
	}
	return f
}

// guest returns the stream with a number, or nil.
func (s *server) guest(number uint64) *visit {
	if i := slices.IndexFunc(s.guests, func(g *visit) bool { return g.number == number }); i >= 0 {
		return s.guests[i]
	}
	return nil
}

// comes receives a frame from the network.
func (g *visit) comes(frame *api.ClientFrame) {
	g.in = append(g.in, frame)
	g.read()
}

// read processes frames of the client.
func (g *visit) read() {
	for !g.left && len(g.in) > 0 && !g.box.Full() {
		frame := g.in[0]
		g.in = g.in[1:]
		g.call.up.took()
		commands, refused, farewell := stream.Commands(g.caller, g.names, frame)
		if len(refused) > 0 || farewell != nil {
			g.s.w.violate("client", "the frame %v of client %q cannot be carried out: %v %v", frame, g.caller.Principal, refused, farewell)
			return
		}
		g.box.Note(g.s.now(), commands)
		g.s.w.homeRules().asks(commands)
		g.s.host.Submit(g.s.now(), g.number, commands)
	}
}

// pump sends waiting frames until the client accepts no more.
func (g *visit) pump() {
	if g.box.Cut() {
		g.s.w.stats.CutOff++
		g.call.reset()
		g.leave()
	}
	for !g.left && !g.call.down.full() {
		frame, last := g.box.Take(g.s.now(), g.names, func(registry.Op, registry.Code, int64) {})
		if frame != nil {
			g.call.hear(frame)
		}
		if last {
			g.part()
			return
		}
		if frame == nil {
			break
		}
	}
	g.read()
}

// part ends the stream because the client may not stay.
func (g *visit) part() {
	farewell, _ := g.box.Parting()
	g.leave()
	g.s.w.stats.Hosts.Farewells++
	g.call.hear(&api.ServerFrame{Farewell: farewell})
	g.call.down.finish(func() { g.call.end(true) })
}

// leave handles the end of the stream.
func (g *visit) leave() {
	if g.left {
		return
	}
	g.left = true
	if g.s.host != nil {
		g.s.host.Drop(g.number)
	}
	g.s.guests = slices.DeleteFunc(g.s.guests, func(other *visit) bool { return other == g })
}
