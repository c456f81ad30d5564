package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/served"
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
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

// liveReuse is the number of idle machines that a host keeps. It is so small that hosts drop
// others.
const liveReuse = 2

func newHosting(w *world) *hosting {
	l := &hosting{guarding: newGuarding(w, lockNames()...), witness: newWitness(), lanes: make(map[[2]uint64]*track), heirs: make(map[registry.SessionID]registry.SessionID)}
	l.over, l.seatless, l.often = l.end, l.mayHaveNone, 9000
	if l.seldom = 1500; w.plan.Steady {
		l.seldom = []int64{6000, 30_000}[l.rng.IntN(2)]
	}
	if w.plan.Near {
		l.near = newNearby(l)
	}
	w.after(laneBeat, l.connect)
	w.after(1000*ms, l.operate)
	w.after(2000*ms, l.turn)
	if w.plan.Watch {
		l.watches = newWatching(l)
	}
	return l
}

// turn starts a new epoch from time to time, by changing the guard of unused names.
func (l *hosting) turn() {
	if l.w.healed {
		return
	}
	l.w.after((50+l.rng.Int64N(l.seldom))*ms, l.turn)
	var how registry.Guarding
	if g := l.last.Find("turn/"); l.last.Live() && (g == nil || !g.Use.Live()) {
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
	s := l.w.servers[id-1]
	if s.host == nil {
		return false
	}
	seat, _ := s.host.Seat()
	return seat == registry.SessionID{}
}

// at returns the seat that is responsible for the sessions of a seat now.
func (l *hosting) at(seat registry.SessionID) registry.SessionID {
	for heir, known := l.heirs[seat]; known; heir, known = l.heirs[seat] {
		seat = heir
	}
	return seat
}

// end checks a seat that ends. No client of it may rely on a hold, unless another seat has taken it
// over (N4).
func (l *hosting) end(seat view.Seat, log *view.Log) {
	l.near.end(seat)
	heir, known := log.HeirOf(seat)
	if known {
		l.w.stats.Hosts.Heirs++
	}
	for _, c := range l.w.clients {
		for _, k := range c.workers {
			if h := k.hold; h != nil && h.counts() && h.session.home() && l.at(h.session.seat) == registry.SeatID(seat) {
				if known {
					l.w.stats.Hosts.Handed++
					continue
				}
				l.w.violate("seat", "the seat of server %d ends, and a client of it holds %q for another %d ms", seat.Server, h.claim.res.name, (h.session.endsAt-l.w.now)/ms)
			}
		}
	}
	if known {
		l.heirs[registry.SeatID(seat)] = registry.SeatID(heir)
	}
}

// reuse returns the number of idle machines that a host keeps.
func (l *hosting) reuse() int {
	if l.w.plan.Steady {
		return 1
	}
	return liveReuse
}

// begin creates a host for a server that starts.
func (l *hosting) begin(s *server) {
	cfg := host.Config{Server: s.id, Seed: l.rng.Uint64(), Lease: seatTTL, Reuse: l.reuse()}
	if rules := l.w.homeRules(); rules != nil {
		cfg.OnHold = func(h registry.Holding) { rules.grants(s, h) }
	}
	s.host, s.shown, s.answered = host.New(cfg), nil, 0
	s.guests = nil
	l.showRules(s)
	s.host.View(s.now(), s.replica.Registry().Guarded())
}

// stop ends the host when its process ends.
func (l *hosting) stop(s *server) {
	for _, g := range s.guests {
		g.call.reset()
	}
	s.host, s.guests = nil, nil
	for _, other := range l.w.servers {
		l.lane(s, other).snap()
		l.lane(other, s).snap()
	}
}

// leave stops a server in order. The server first gives up its seat, within the given time.
func (l *hosting) leave(s *server, f faults.Fault) {
	life := s.life
	l.w.homeRules().strip()
	s.receive(func() {
		if s.host != nil {
			s.host.Leave(s.now())
		}
	})
	l.w.after(f.Arg*ms, func() {
		if s.life == life {
			s.crash()
			l.w.hold(s, f.For*ms)
		}
	})
}

// tick sends a tick to the host of a server.
func (l *hosting) tick(s *server) {
	if s.host != nil {
		s.host.Tick(s.now(), l.w.now+s.wall)
	}
}

// follow passes to the host what the server has applied, and passes the answers of the leader to
// the seats.
func (l *hosting) follow(s *server, out *replica.Output) {
	l.showRules(s)
	if out.View && s.host != nil {
		s.host.View(s.now(), s.replica.Registry().Guarded())
	}
	for _, r := range out.Seats {
		to := l.w.servers[r.Server-1]
		l.transmit(s, to, func() { l.read(to, r.Outcome) })
	}
}

// showRules gives the host the rules that its server has applied.
func (l *hosting) showRules(s *server) {
	if rules := s.replica.Registry().Rules(); s.host != nil && rules != s.shown {
		s.shown = rules
		s.host.Rules(s.now(), rules)
	}
}

// read passes an answer of the leader to a host. After a pause of the server, the answer may come
// later than everything that arrived over other connections.
func (l *hosting) read(s *server, o registry.Outcome) {
	answer := func() {
		if s.host != nil {
			s.host.Answer(s.now(), []registry.Outcome{o})
		}
	}
	if s.woken > 0 && l.w.now-s.woken < 100*ms && l.rng.IntN(2) == 0 {
		life := s.life
		l.w.after(l.rng.Int64N(10*ms), func() {
			if s.life == life {
				s.receive(answer)
			}
		})
		return
	}
	answer()
}

// carryOut carries out the outputs of a server's host.
func (l *hosting) carryOut(s *server) {
	if s.host != nil {
		l.look(s)
	}
	for again := s.host != nil; again; {
		out := s.host.Output()
		if out.Err != nil {
			l.w.violate("host", "the host of server %d stops: %v", s.id, out.Err)
			return
		}
		for _, b := range out.Batches {
			l.lane(s, l.w.servers[b.Server-1]).send(slices.Clone(b.Data))
		}
		for _, r := range out.Replies {
			if g := s.guest(r.Conn); g != nil {
				l.w.homeRules().refuses(s, g.caller.Principal, &r)
				g.box.Deliver([]registry.Outcome{r.Outcome})
			}
		}
		l.ask(s, out)
		for _, id := range out.Close {
			l.lane(l.w.servers[id-1], s).snap()
		}
		if out.More {
			s.wake()
		}
		if out.Gone != "" {
			l.w.tell("server %d has no seat any more: %s", s.id, out.Gone)
			l.w.stats.Hosts.Gone++
		}
		l.farewells(s, out.Gone != "")
		if again = out.Enter; again {
			s.host.Enter([2]uint64{l.rng.Uint64(), l.rng.Uint64()})
		}
	}
	s.answered = s.shown.Revision()
}

// ask brings the commands of a seat to the leader.
func (l *hosting) ask(s *server, out *host.Output) {
	leader := s.replica.Leader()
	if len(out.Seat) == 0 || leader == 0 || leader > uint64(len(l.w.servers)) {
		return
	}
	id, _ := s.host.Seat()
	report := replica.Report{Seat: id, Epoch: out.Report.Epoch, Reaches: slices.Clone(out.Report.Reaches), Complains: slices.Clone(out.Report.Complains), Doubts: slices.Clone(out.Report.Doubts)}
	if len(report.Doubts) > 0 {
		l.w.stats.Hosts.Doubts++
	}
	commands, to := slices.Clone(out.Seat), l.w.servers[leader-1]
	l.transmit(s, to, func() { to.replica.SubmitSeat(to.tellTime(), s.id, commands, report) })
}

// farewells sends what waits for clients. It ends the streams of clients that may not stay (H7).
func (l *hosting) farewells(s *server, gone bool) {
	for _, g := range slices.Clone(s.guests) {
		if gone || !s.host.Serving() {
			g.box.End(s.farewell())
		}
		g.pump()
	}
}

// revoke asks all homes to make the holder of a name leave (H9).
func (l *hosting) revoke(res *resource, by string) {
	l.w.stats.Hosts.Asked++
	c := registry.Command{Op: registry.OpRevoke, Class: res.class, Name: res.name, Value: whyAsked, By: &registry.Origin{Actor: by, Via: "grpc"}}
	for _, s := range l.w.servers {
		if s.host != nil && l.rng.IntN(8) > 0 {
			l.w.after(l.rng.Int64N(3*ms), func() {
				s.receive(func() {
					if s.host != nil {
						s.host.Revoke(s.now(), &c)
					}
				})
			})
		}
	}
}
