package world

import (
	"slices"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/stream"
)

// visit is the stream of a client at a home. It corresponds to AttachHome of internal/service/attach.
type visit struct {
	s      *Server
	Call   *call
	Caller stream.Caller
	names  *stream.Sessions
	Box    stream.Outbox
	number uint64 // the number by which the host identifies it
	in     []*api.ClientFrame
	left   bool
}

// attachHome accepts a stream of a client that uses the server as its home.
func (s *Server) attachHome(l *call, who stream.Caller) {
	s.w.numbers++
	g := &visit{s: s, Call: l, Caller: who, number: s.w.numbers, names: stream.NewSessions(who), Box: s.w.outbox()}
	l.at = g
	l.down.Room = func() {
		if !g.left {
			s.TakeAlways(g.Pump)
		}
	}
	seat, lease := s.Host.Seat()
	welcome := &api.Welcome{Cluster: "vopr", Server: s.ID, Version: 1, Seat: seat[:], LeaseNs: lease}
	for _, id := range s.Host.Adopted() {
		welcome.Adopted = append(welcome.Adopted, id[:])
	}
	l.hear(&api.ServerFrame{Welcome: welcome})
	s.Guests = append(s.Guests, g)
	if !s.Host.Serving() {
		g.Box.End(s.Farewell())
		g.Pump()
	}
}

// Farewell returns a farewell with the names of the participating servers.
func (s *Server) Farewell() *api.Farewell {
	f := &api.Farewell{Code: api.Code_CODE_NOT_MEMBER}
	if to := s.Host.Successor(); to != 0 {
		f.Heir = s.w.Servers[to-1].said().ClientAddress
	}
	for _, m := range s.Replica.Registry().Guarded().Members {
		f.Members = append(f.Members, s.w.Servers[m.Server-1].said().ClientAddress)
	}
	return f
}

// Guest returns the stream with a number, or nil.
func (s *Server) Guest(number uint64) *visit {
	if i := slices.IndexFunc(s.Guests, func(g *visit) bool { return g.number == number }); i >= 0 {
		return s.Guests[i]
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
	for !g.left && len(g.in) > 0 && !g.Box.Full() {
		frame := g.in[0]
		g.in = g.in[1:]
		g.Call.up.Took()
		commands, refused, farewell := stream.Commands(g.Caller, g.names, frame)
		if len(refused) > 0 || farewell != nil {
			g.s.w.Violate("client", "the frame %v of client %q cannot be carried out: %v %v", frame, g.Caller.Principal, refused, farewell)
			return
		}
		g.Box.Note(g.s.Now(), commands)
		if rules := g.s.w.HomeRules(); rules != nil {
			rules.Asks(commands)
		}
		g.s.Host.Submit(g.s.Now(), g.number, commands)
	}
}

// Pump sends waiting frames until the client accepts no more.
func (g *visit) Pump() {
	if g.Box.Cut() {
		g.s.w.Stats.CutOff++
		g.Call.Reset()
		g.leave()
	}
	for !g.left && !g.Call.down.Full() {
		frame, last := g.Box.Take(g.s.Now(), g.names, func(registry.Op, registry.Code, int64) {})
		if frame != nil {
			g.Call.hear(frame)
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
	farewell, _ := g.Box.Parting()
	g.leave()
	g.s.w.Stats.Hosts.Farewells++
	g.Call.hear(&api.ServerFrame{Farewell: farewell})
	g.Call.down.Finish(func() { g.Call.end(true) })
}

// leave handles the end of the stream.
func (g *visit) leave() {
	if g.left {
		return
	}
	g.left = true
	if g.s.Host != nil {
		g.s.Host.Drop(g.number)
	}
	g.s.Guests = slices.DeleteFunc(g.s.Guests, func(other *visit) bool { return other == g })
}
