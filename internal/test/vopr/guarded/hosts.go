package guarded

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// hosting is the part of a world in which each server runs a host beside its replica, in the same
// turns. Clients have a second line to a home. Frames between hosts travel on lanes.
type hosting struct {
	guarding
	witness
	lanes   map[[2]uint64]*track                      // from, to
	heirs   map[registry.SessionID]registry.SessionID // of seats that have ended
	watches *watching                                 // nil if the plan has no watch stack
	near    *nearby                                   // nil if the plan has no near holds
	seldom  int64                                     // approximate maximum time between two turns, in ms
}

// reuse is the number of idle machines that a host keeps. It is so small that hosts drop
// others.
const reuse = 2

// NewHosts returns the part in which servers run the algorithms.
func NewHosts(w *world.World) *hosting {
	l := &hosting{guarding: newGuarding(w, lockNames()...), witness: newWitness(), lanes: make(map[[2]uint64]*track), heirs: make(map[registry.SessionID]registry.SessionID)}
	l.hosts, l.over, l.seatless, l.often = l, l.end, l.mayHaveNone, 9000
	if l.seldom = 1500; w.Plan.Steady {
		l.seldom = []int64{6000, 30_000}[l.rng.IntN(2)]
	}
	if w.Plan.Near {
		l.near = newNearby(l)
	}
	w.After(laneBeat, l.connect)
	w.After(1000*ms, l.operate)
	w.After(2000*ms, l.turn)
	if w.Plan.Watch {
		l.watches = newWatching(l)
	}
	return l
}

// turn starts a new epoch from time to time, by changing the guard of unused names.
func (l *hosting) turn() {
	if l.w.Healed {
		return
	}
	l.w.After((50+l.rng.Int64N(l.seldom))*ms, l.turn)
	var how registry.Guarding
	if g := l.last.Find("turn/"); l.last.Guarded() && (g == nil || !g.Use.Guarded()) {
		how.Use = view.Use{Algorithm: "central"}
	}
	l.setGuard("turn/", how)
}

// lockNames returns the names of the algorithms that servers run for locks.
func lockNames() (names []string) {
	for _, spec := range served.Locks {
		names = append(names, spec.Name)
	}
	return names
}

// mayHaveNone reports whether a server may be without a seat. It may pause before it asks for the
// next.
func (l *hosting) mayHaveNone(id uint64) bool {
	s := l.w.Servers[id-1]
	if s.Host == nil {
		return false
	}
	seat, _ := s.Host.Seat()
	return seat == registry.SessionID{}
}

// at returns the seat that is responsible for the sessions of a seat now.
func (l *hosting) at(seat registry.SessionID) registry.SessionID {
	for heir, known := l.heirs[seat]; known; heir, known = l.heirs[seat] {
		seat = heir
	}
	return seat
}

// Granted checks a hold that begins at a home. The seat of the home must not have ended (N4).
func (l *hosting) Granted(h *world.Hold) {
	at := l.at(h.Session.Seat)
	for seat := range l.ended {
		if registry.SeatID(seat) == at {
			l.w.Violate("seat", "%q is granted at the home of server %d, the seat of which has ended", h.Claim.Res.Name, seat.Server)
		}
	}
}

// Beside checks a hold of a client that begins, against those of the programs of servers.
func (l *hosting) Beside(h *world.Hold) { l.near.beside(h) }

// end checks a seat that ends. No client of it may rely on a hold, unless another seat has taken it
// over (N4).
func (l *hosting) end(seat view.Seat, log *view.Log) {
	l.near.end(seat)
	heir, known := log.HeirOf(seat)
	if known {
		l.w.Stats.Hosts.Heirs++
	}
	for _, c := range l.w.Clients {
		for _, k := range c.Workers {
			if h := k.Hold; h != nil && h.Counts() && h.Session.Home() && l.at(h.Session.Seat) == registry.SeatID(seat) {
				if known {
					l.w.Stats.Hosts.Handed++
					continue
				}
				l.w.Violate("seat", "the seat of server %d ends, and a client of it holds %q for another %d ms", seat.Server, h.Claim.Res.Name, (h.Session.EndsAt-l.w.Now)/ms)
			}
		}
	}
	if known {
		l.heirs[registry.SeatID(seat)] = registry.SeatID(heir)
	}
}

// reuse returns the number of idle machines that a host keeps.
func (l *hosting) reuse() int {
	if l.w.Plan.Steady {
		return 1
	}
	return reuse
}

// Begin creates a host for a server that starts.
func (l *hosting) Begin(s *world.Server) {
	cfg := host.Config{Server: s.ID, Seed: l.rng.Uint64(), Lease: world.SeatTTL, Reuse: l.reuse()}
	if rules := l.w.HomeRules(); rules != nil {
		cfg.OnHold = func(h registry.Holding) { rules.Grants(s, h) }
	}
	s.Host, s.Shown, s.Answered = host.New(cfg), nil, 0
	s.Guests = nil
	l.showRules(s)
	s.Host.View(s.Now(), s.Replica.Registry().Guarded())
}

// Stop ends the host when its process ends.
func (l *hosting) Stop(s *world.Server) {
	for _, g := range s.Guests {
		g.Call.Reset()
	}
	s.Host, s.Guests = nil, nil
	for _, other := range l.w.Servers {
		l.lane(s, other).snap()
		l.lane(other, s).snap()
	}
}

// Leave stops a server in order. The server first gives up its seat, within the given time.
func (l *hosting) Leave(s *world.Server, f faults.Fault) {
	life := s.Life
	if rules := l.w.HomeRules(); rules != nil {
		rules.Strip()
	}
	s.Receive(func() {
		if s.Host != nil {
			s.Host.Leave(s.Now())
		}
	})
	l.w.After(f.Arg*ms, func() {
		if s.Life == life {
			s.Crash()
			l.w.Hold(s, f.For*ms)
		}
	})
}

// Tick sends a tick to the host of a server.
func (l *hosting) Tick(s *world.Server) {
	if s.Host != nil {
		s.Host.Tick(s.Now(), l.w.Now+s.Wall)
	}
}

// Follow passes to the host what the server has applied, and passes the answers of the leader to
// the seats.
func (l *hosting) Follow(s *world.Server, out *replica.Output) {
	l.showRules(s)
	if out.View && s.Host != nil {
		s.Host.View(s.Now(), s.Replica.Registry().Guarded())
	}
	for _, r := range out.Seats {
		to := l.w.Servers[r.Server-1]
		l.Transmit(s, to, func() { l.read(to, r.Outcome) })
	}
}

// showRules gives the host the rules that its server has applied.
func (l *hosting) showRules(s *world.Server) {
	if rules := s.Replica.Registry().Rules(); s.Host != nil && rules != s.Shown {
		s.Shown = rules
		s.Host.Rules(s.Now(), rules)
	}
}

// read passes an answer of the leader to a host. After a pause of the server, the answer may come
// later than everything that arrived over other connections.
func (l *hosting) read(s *world.Server, o registry.Outcome) {
	answer := func() {
		if s.Host != nil {
			s.Host.Answer(s.Now(), []registry.Outcome{o})
		}
	}
	if s.Woken > 0 && l.w.Now-s.Woken < 100*ms && l.rng.IntN(2) == 0 {
		life := s.Life
		l.w.After(l.rng.Int64N(10*ms), func() {
			if s.Life == life {
				s.Receive(answer)
			}
		})
		return
	}
	answer()
}

// CarryOut carries out the outputs of a server's host.
func (l *hosting) CarryOut(s *world.Server) {
	if s.Host != nil {
		l.look(s)
	}
	for again := s.Host != nil; again; {
		out := s.Host.Output()
		if out.Err != nil {
			l.w.Violate("host", "the host of server %d stops: %v", s.ID, out.Err)
			return
		}
		for _, b := range out.Batches {
			l.lane(s, l.w.Servers[b.Server-1]).send(slices.Clone(b.Data))
		}
		for _, r := range out.Replies {
			if g := s.Guest(r.Conn); g != nil {
				if rules := l.w.HomeRules(); rules != nil {
					rules.Refuses(s, g.Caller.Principal, &r)
				}
				g.Box.Deliver([]registry.Outcome{r.Outcome})
			}
		}
		l.ask(s, out)
		for _, id := range out.Close {
			l.lane(l.w.Servers[id-1], s).snap()
		}
		if out.More {
			s.Wake()
		}
		if out.Gone != "" {
			l.w.Tell("server %d has no seat any more: %s", s.ID, out.Gone)
			l.w.Stats.Hosts.Gone++
		}
		l.farewells(s, out.Gone != "")
		if again = out.Enter; again {
			s.Host.Enter([2]uint64{l.rng.Uint64(), l.rng.Uint64()})
		}
	}
	s.Answered = s.Shown.Revision()
}

// ask brings the commands of a seat to the leader.
func (l *hosting) ask(s *world.Server, out *host.Output) {
	leader := s.Replica.Leader()
	if len(out.Seat) == 0 || leader == 0 || leader > uint64(len(l.w.Servers)) {
		return
	}
	id, _ := s.Host.Seat()
	report := replica.Report{Seat: id, Epoch: out.Report.Epoch, Reaches: slices.Clone(out.Report.Reaches), Complains: slices.Clone(out.Report.Complains), Doubts: slices.Clone(out.Report.Doubts)}
	if len(report.Doubts) > 0 {
		l.w.Stats.Hosts.Doubts++
	}
	commands, to := slices.Clone(out.Seat), l.w.Servers[leader-1]
	l.Transmit(s, to, func() { to.Replica.SubmitSeat(to.TellTime(), s.ID, commands, report) })
}

// farewells sends what waits for clients. It ends the streams of clients that may not stay (H7).
func (l *hosting) farewells(s *world.Server, gone bool) {
	for _, g := range slices.Clone(s.Guests) {
		if gone || !s.Host.Serving() {
			g.Box.End(s.Farewell())
		}
		g.Pump()
	}
}

// Revoke asks all homes to make the holder of a name leave (H9).
func (l *hosting) Revoke(res *world.Resource, by string) {
	l.w.Stats.Hosts.Asked++
	c := registry.Command{Op: registry.OpRevoke, Class: res.Class, Name: res.Name, Value: world.WhyAsked, By: &registry.Origin{Actor: by, Via: "grpc"}}
	for _, s := range l.w.Servers {
		if s.Host != nil && l.rng.IntN(8) > 0 {
			l.w.After(l.rng.Int64N(3*ms), func() {
				s.Receive(func() {
					if s.Host != nil {
						s.Host.Revoke(s.Now(), &c)
					}
				})
			})
		}
	}
}
