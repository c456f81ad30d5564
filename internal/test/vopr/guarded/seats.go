package guarded

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/test/vopr/clock"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// seating is the part of a world in which algorithms on the servers guard names. Servers have
// seats. A stand-in replaces the algorithms: it knows all homes, and lets a client enter a name
// when all members of its epoch allow that. An operator changes the guards of names. Tenants
// acquire names by agreement when no algorithm guards them. This part has its own random source, so
// that other plans stay the same.
type seating struct {
	guarding
	homes  map[uint64]*home // by server, for its current life
	seats  map[view.Seat]*home
	holds  []*guardedHold
	tenant []*tenant
}

// home is the home that a server provides for its clients, during one life of its process.
type home struct {
	*seating
	s    *world.Server
	life int

	seat     view.Seat // its ID is zero until one is chosen
	entered  bool      // the server has applied the entry with the seat
	sequence uint64
	sent     map[uint64]int64            // when renewals were sent, by sequence number
	waiting  map[uint64]registry.Command // other commands without an answer
	promise  int64                       // the time until which its clients rely on it
	later    int64                       // when it may ask for a seat
	pause    int64                       // the pause before the next request, if the seat is lost
	epoch    uint64
	said     map[uint64]bool // the changes in this epoch for which it has sent QUIET

	leaving bool
	closes  uint64 // the sequence number of its OpClose, or 0
	heir    *home
	silent  map[uint64]int64 // for each silent server, the time since which it has not answered
}

// guardedHold is a hold of a client of a home.
type guardedHold struct {
	name string
	home *home
	over bool
}

const (
	seatBeat  = world.SeatTTL / 12
	complains = world.SeatTTL / 2
)

// guardedPrefixes are the prefixes that may have their own guards.
var guardedPrefixes = []string{"live/", "live/b/"}

// NewSeats returns the part in which a stand-in replaces the algorithms.
func NewSeats(w *world.World) *seating {
	l := &seating{
		guarding: newGuarding(w, "central", "suzuki-kasami"), homes: make(map[uint64]*home), seats: make(map[view.Seat]*home),
	}
	l.over, l.seatless = l.end, l.mayHaveNone
	for n := range 2 {
		l.tenant = append(l.tenant, newTenant(l, n))
	}
	w.After(seatBeat, l.beat)
	w.After(1000*ms, l.operate)
	return l
}

// beat lets every working home do its next step.
func (l *seating) beat() {
	for _, s := range l.w.Servers {
		if !s.Up() || s.Paused {
			continue
		}
		h := l.homes[s.ID]
		if h == nil || h.life != s.Life {
			h = &home{seating: l, s: s, life: s.Life, pause: 1000 * ms, silent: make(map[uint64]int64)}
			l.homes[s.ID] = h
		}
		l.w.After(l.rng.Int64N(seatBeat/4), func() {
			if s.Up() && !s.Paused && h.runs() {
				h.act()
			}
		})
	}
	for _, t := range l.tenant {
		t.act()
	}
	l.w.After(seatBeat, l.beat)
}

// runs reports whether the process of this home still runs.
func (h *home) runs() bool { return h.s.On && h.s.Life == h.life }

// log returns the view at the server.
func (h *home) log() *view.Log { return h.s.Replica.Registry().Guarded() }

func (h *home) member() bool { return slices.Contains(h.log().Members, h.seat) }

func (h *home) act() {
	l := h.log()
	h.follow(l)
	if h.seat.ID == [2]uint64{} && l.Guarded() && h.w.Now >= h.later {
		h.draw()
	}
	if h.entered {
		h.serve(l)
		h.leave(l)
	}
	h.speak(l)
}

// draw chooses the id of a new seat.
func (h *home) draw() {
	h.seat = view.Seat{Server: h.s.ID, ID: [2]uint64{h.rng.Uint64(), h.rng.Uint64()}}
	h.entered, h.sequence, h.promise, h.leaving, h.closes, h.heir = false, 0, 0, false, 0, nil
	h.sent, h.waiting, h.said = make(map[uint64]int64), make(map[uint64]registry.Command), make(map[uint64]bool)
	h.seats[h.seat] = h
}

// follow processes what the server has applied.
func (h *home) follow(l *view.Log) {
	seated := slices.Contains(l.Seats, h.seat)
	switch {
	case seated:
		h.entered = true
	case h.entered || h.ended[h.seat]:
		h.lose()
	}
	if l.Epoch > h.epoch {
		h.epoch = l.Epoch
		clear(h.said)
	}
}

// lose resets the home after its seat has ended (S5).
func (h *home) lose() {
	for _, x := range h.holds {
		x.over = x.over || x.home == h
	}
	h.seat, h.entered, h.promise = view.Seat{}, false, 0
	h.later = h.w.Now + h.pause
	h.pause = min(2*h.pause, 60_000*ms)
}

// held returns the holds of its clients.
func (h *home) held() (list []*guardedHold) {
	for _, x := range h.holds {
		if x.home == h && !x.over {
			list = append(list, x)
		}
	}
	return list
}

// serve lets clients enter and leave. It sends QUIET for changed guards under which nothing is
// held.
func (h *home) serve(l *view.Log) {
	if h.closes == 0 && (h.heir == nil || !h.leaving) {
		for _, x := range h.held() {
			g := l.GuardOf(x.name)
			draining := g == nil || g.Change != 0
			if h.w.Healed || draining && (g == nil || g.Conditions.Force || h.rng.IntN(4) == 0) || h.rng.IntN(12) == 0 {
				x.over = true
			}
		}
		if name := world.GuardedNames[h.rng.IntN(len(world.GuardedNames))]; !h.w.Healed && !h.leaving && h.rng.IntN(3) == 0 && h.admits(l, name) {
			h.enter(name)
		}
	}
	for _, g := range l.Guards {
		if g.Change != 0 && g.Use.Guarded() && !h.said[g.Change] && h.member() && !h.holdsUnder(l, g.Prefix) && h.closes == 0 {
			h.said[g.Change] = true
			h.ask(registry.Command{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: h.epoch, Change: g.Change}})
		}
	}
	if h.member() && h.rng.IntN(150) == 0 && !h.w.Healed {
		h.ask(registry.Command{Op: registry.OpTurn, Value: "chance", Guarding: &registry.Guarding{Epoch: h.epoch, Coordinator: h.s.ID * h.rng.Uint64N(2)}})
	}
}

func (h *home) holdsUnder(l *view.Log, prefix string) bool {
	return slices.ContainsFunc(h.held(), func(x *guardedHold) bool {
		g := l.GuardOf(x.name)
		return g != nil && g.Prefix == prefix
	})
}

// admits replaces the algorithm. A client may enter if no other client of the epoch is inside, and
// all members are in the epoch.
func (h *home) admits(l *view.Log, name string) bool {
	g := l.GuardOf(name)
	if g == nil || !g.Use.Guarded() || g.Change != 0 || h.w.Now >= h.promise {
		return false
	}
	member := false
	for _, m := range l.Members {
		other := h.seats[m]
		if other == nil || !other.runs() || other.epoch < h.epoch || other.seat != m {
			return false
		}
		if slices.ContainsFunc(other.held(), func(x *guardedHold) bool { return x.name == name }) {
			return false
		}
		member = member || other == h
	}
	return member
}

// leave closes the seat when all holds have ended or have an heir.
func (h *home) leave(l *view.Log) {
	if !h.leaving {
		// While a guard changes, homes leave more often, because handovers are most critical then.
		rarely := 80
		if slices.ContainsFunc(h.held(), func(x *guardedHold) bool { g := l.GuardOf(x.name); return g != nil && g.Change != 0 }) {
			rarely = 8
		}
		h.leaving = h.entered && (!l.Guarded() || !h.w.Healed && h.rng.IntN(rarely) == 0)
		return
	}
	if h.closes != 0 {
		return
	}
	if len(h.held()) > 0 {
		if h.heir == nil {
			h.heir = h.chooseHeir(l)
		}
		switch heir := h.heir; {
		case heir == nil || !heir.runs() || heir.leaving || !slices.Contains(l.Members, heir.seat):
			h.heir = nil
			for _, x := range h.held() {
				x.over = true // the hold is revoked
			}
		case heir.promise < h.promise:
			return // the lease of the heir must last longer than the promises to the clients
		}
	}
	h.ask(registry.Command{Op: registry.OpClose})
	h.closes = h.sequence
}

// chooseHeir returns a member that can take over the holds, or nil. It prefers a member that has
// just sent QUIET.
func (h *home) chooseHeir(l *view.Log) (heir *home) {
	for _, m := range l.Members {
		other := h.seats[m]
		if other == nil || other == h || !other.runs() || other.seat != m || other.leaving {
			continue
		}
		for _, c := range other.waiting {
			if c.Op == registry.OpQuiet {
				return other
			}
		}
		heir = other
	}
	return heir
}

// ask sends a command with each beat until it is answered.
func (h *home) ask(c registry.Command) {
	h.sequence++
	c.Session, c.Sequence = registry.SeatID(h.seat), h.sequence
	h.waiting[h.sequence] = c
}

// speak renews the seat, sends the waiting commands, and sends a report.
func (h *home) speak(l *view.Log) {
	if h.seat.ID == [2]uint64{} || h.w.Now < h.later {
		return
	}
	h.sequence++
	id := registry.SeatID(h.seat)
	beat := registry.Command{Op: registry.OpRenew, Session: id, Sequence: h.sequence}
	if !h.entered {
		beat.Op, beat.TTL, beat.Guarding = registry.OpEnter, world.SeatTTL, &registry.Guarding{Server: h.s.ID}
	}
	h.sent[h.sequence] = h.w.Now
	commands := []registry.Command{beat}
	for _, sequence := range slices.Sorted(maps.Keys(h.waiting)) {
		if c := h.waiting[sequence]; c.Op != registry.OpQuiet || h.rng.IntN(3) == 0 {
			commands = append(commands, c) // the other commands are sent later
		}
	}
	report := h.report(id)
	leader := h.s.Replica.Leader()
	if leader == 0 {
		return
	}
	to, server := h.w.Servers[leader-1], h.s.ID
	h.Transmit(h.s, to, func() { to.Replica.SubmitSeat(to.TellTime(), server, slices.Clone(commands), report) })
}

// report returns which servers the home can reach, and which have not answered for half a lease.
func (h *home) report(id registry.SessionID) replica.Report {
	report := replica.Report{Seat: id, Epoch: h.epoch}
	for _, other := range h.w.Servers {
		me, it := h.s.Endpoint(), other.Endpoint()
		if other == h.s || other.Up() && !other.Paused && !h.w.Net.Blocked(me, it) && !h.w.Net.Blocked(it, me) {
			report.Reaches = append(report.Reaches, other.ID)
			delete(h.silent, other.ID)
			continue
		}
		if _, known := h.silent[other.ID]; !known {
			h.silent[other.ID] = h.w.Now
		}
		if h.w.Now-h.silent[other.ID] > complains {
			report.Complains = append(report.Complains, other.ID)
		}
	}
	return report
}

// Answer passes the answers of a server to the seats.
func (l *seating) Answer(s *world.Server, seats []replica.SeatReply) {
	for _, r := range seats {
		h := l.homes[r.Server]
		if h == nil || !h.runs() || registry.SeatID(h.seat) != r.Session {
			continue
		}
		l.Transmit(s, h.s, func() { h.hear(r.Outcome) })
	}
}

// believed returns how long a client relies on an answer, from the time of its request. It is the
// TTL less the margin, by the slowest clock that is allowed. No client relies on it longer.
func believed(remaining int64) int64 {
	margin := max(remaining/10, 100*ms)
	if remaining < 1000*ms {
		margin = remaining / 3
	}
	return (remaining - margin) * clock.Million / (clock.Million - faults.MaxDrift)
}

func (h *home) hear(o registry.Outcome) {
	if !h.runs() || registry.SeatID(h.seat) != o.Session {
		return
	}
	if c, asked := h.waiting[o.Sequence]; asked {
		if code := o.Result.Code; c.Op == registry.OpTurn || code != registry.NotLeader && code != registry.Unavailable && code != registry.Exhausted {
			delete(h.waiting, o.Sequence)
		}
		return
	}
	sent, renewal := h.sent[o.Sequence]
	delete(h.sent, o.Sequence)
	switch {
	case !renewal:
	case o.Result.Code == registry.OK && h.closes == 0 && (h.heir == nil || !h.leaving):
		// A home that hands over no longer answers its clients.
		if h.promise = max(h.promise, sent+believed(o.Result.Remaining)); h.ended[h.seat] && h.promise > h.w.Now {
			h.w.Violate("seat", "the seat of server %d is renewed for another %d ms and has ended", h.s.ID, (h.promise-h.w.Now)/ms)
		}
		h.w.Stats.Seats.Renewals++
	case o.Result.Code == registry.Unavailable:
		h.later = h.w.Now + o.Result.Remaining
	case o.Result.Code == registry.SessionGone && h.entered:
		h.lose()
	}
}

// sessionID returns a random session id.
func (l *seating) sessionID() (id registry.SessionID) {
	binary.BigEndian.PutUint64(id[:], l.rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], l.rng.Uint64())
	return id
}
