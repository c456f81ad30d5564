package vopr

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/replica"
)

// seating is the part of a world in which algorithms on the servers guard names. Servers
// have seats, and a stand-in takes the place of what will serve there: it knows all
// homes, and enters a name when those of its epoch let it. An operator changes what guards
// which names, and tenants ask for them where agreement does. All chance is of its own, so
// that other plans keep their meaning.
type seating struct {
	guarding
	homes  map[uint64]*home // by server, of its present life
	seats  map[view.Seat]*home
	holds  []*liveHold
	tenant []*tenant
}

// home is what a server is to its clients, for one life of its process.
type home struct {
	*seating
	s    *server
	life int

	seat     view.Seat // its ID is zero until one is drawn
	entered  bool      // the server has applied that it has the seat
	sequence uint64
	sent     map[uint64]int64            // when renewals were, by sequence
	waiting  map[uint64]registry.Command // other commands without an answer
	promise  int64                       // until when its clients believe
	later    int64                       // when it may ask for a seat
	pause    int64                       // before the next one, if this is lost
	epoch    uint64
	said     map[uint64]bool // changes of which it has said quiet in this epoch

	leaving bool
	closes  uint64 // the sequence of its OpClose, once it was sent
	heir    *home
	dumb    map[uint64]int64 // since when a server has not answered it
}

// liveHold is a name that a client of a home holds.
type liveHold struct {
	name string
	home *home
	over bool
}

const (
	seatTTL   = 1200 * ms
	seatBeat  = seatTTL / 12
	complains = seatTTL / 2
)

// livePrefixes may have guards of their own, and liveNames are under them.
var (
	livePrefixes = []string{"live/", "live/b/"}
	liveNames    = []string{"live/a", "live/c", "live/b/d", "live/b/e"}
)

func newSeating(w *world) *seating {
	l := &seating{
		guarding: newGuarding(w, "central", "suzuki-kasami"), homes: make(map[uint64]*home), seats: make(map[view.Seat]*home),
	}
	l.over, l.seatless = l.end, l.mayHaveNone
	for n := range 2 {
		l.tenant = append(l.tenant, newTenant(l, n))
	}
	w.after(seatBeat, l.beat)
	w.after(1000*ms, l.operate)
	return l
}

// beat lets every home act that can.
func (l *seating) beat() {
	for _, s := range l.w.servers {
		if !s.up() || s.paused {
			continue
		}
		h := l.homes[s.id]
		if h == nil || h.life != s.life {
			h = &home{seating: l, s: s, life: s.life, pause: 1000 * ms, dumb: make(map[uint64]int64)}
			l.homes[s.id] = h
		}
		l.w.after(l.rng.Int64N(seatBeat/4), func() {
			if s.up() && !s.paused && h.runs() {
				h.act()
			}
		})
	}
	for _, t := range l.tenant {
		t.act()
	}
	l.w.after(seatBeat, l.beat)
}

// runs reports whether the process is still the one whose home it is.
func (h *home) runs() bool { return h.s.on && h.s.life == h.life }

// log is what the server has applied.
func (h *home) log() *view.Log { return h.s.replica.Registry().Live() }

func (h *home) member() bool { return slices.Contains(h.log().Members, h.seat) }

func (h *home) act() {
	l := h.log()
	h.follow(l)
	if h.seat.ID == [2]uint64{} && l.Live() && h.w.now >= h.later {
		h.draw()
	}
	if h.entered {
		h.serve(l)
		h.leave(l)
	}
	h.speak(l)
}

// draw draws a seat.
func (h *home) draw() {
	h.seat = view.Seat{Server: h.s.id, ID: [2]uint64{h.rng.Uint64(), h.rng.Uint64()}}
	h.entered, h.sequence, h.promise, h.leaving, h.closes, h.heir = false, 0, 0, false, 0, nil
	h.sent, h.waiting, h.said = make(map[uint64]int64), make(map[uint64]registry.Command), make(map[uint64]bool)
	h.seats[h.seat] = h
}

// follow takes what the server has applied.
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

// lose throws away what belongs to a seat that is gone (S5).
func (h *home) lose() {
	for _, x := range h.holds {
		x.over = x.over || x.home == h
	}
	h.seat, h.entered, h.promise = view.Seat{}, false, 0
	h.later = h.w.now + h.pause
	h.pause = min(2*h.pause, 60_000*ms)
}

// held returns what its clients hold.
func (h *home) held() (list []*liveHold) {
	for _, x := range h.holds {
		if x.home == h && !x.over {
			list = append(list, x)
		}
	}
	return list
}

// serve has clients enter and leave, and says quiet where nothing is held.
func (h *home) serve(l *view.Log) {
	if h.closes == 0 && (h.heir == nil || !h.leaving) {
		for _, x := range h.held() {
			g := l.GuardOf(x.name)
			draining := g == nil || g.Change != 0
			if h.w.healed || draining && (g == nil || g.Conditions.Force || h.rng.IntN(4) == 0) || h.rng.IntN(12) == 0 {
				x.over = true
			}
		}
		if name := liveNames[h.rng.IntN(len(liveNames))]; !h.w.healed && !h.leaving && h.rng.IntN(3) == 0 && h.admits(l, name) {
			h.enter(name)
		}
	}
	for _, g := range l.Guards {
		if g.Change != 0 && g.Use.Live() && !h.said[g.Change] && h.member() && !h.holdsUnder(l, g.Prefix) && h.closes == 0 {
			h.said[g.Change] = true
			h.ask(registry.Command{Op: registry.OpQuiet, Live: &registry.Live{Epoch: h.epoch, Change: g.Change}})
		}
	}
	if h.member() && h.rng.IntN(150) == 0 && !h.w.healed {
		h.ask(registry.Command{Op: registry.OpTurn, Value: "chance", Live: &registry.Live{Epoch: h.epoch, Coordinator: h.s.id * h.rng.Uint64N(2)}})
	}
}

func (h *home) holdsUnder(l *view.Log, prefix string) bool {
	return slices.ContainsFunc(h.held(), func(x *liveHold) bool {
		g := l.GuardOf(x.name)
		return g != nil && g.Prefix == prefix
	})
}

// admits stands for the algorithm: nobody else of the epoch is inside, and all of them have
// left the one before.
func (h *home) admits(l *view.Log, name string) bool {
	g := l.GuardOf(name)
	if g == nil || !g.Use.Live() || g.Change != 0 || h.w.now >= h.promise {
		return false
	}
	member := false
	for _, m := range l.Members {
		other := h.seats[m]
		if other == nil || !other.runs() || other.epoch < h.epoch || other.seat != m {
			return false
		}
		if slices.ContainsFunc(other.held(), func(x *liveHold) bool { return x.name == name }) {
			return false
		}
		member = member || other == h
	}
	return member
}

// leave gives the seat back, after what is held has ended or has an heir.
func (h *home) leave(l *view.Log) {
	if !h.leaving {
		// More often while a guard changes: what is handed over then, and to whom, counts.
		rarely := 80
		if slices.ContainsFunc(h.held(), func(x *liveHold) bool { g := l.GuardOf(x.name); return g != nil && g.Change != 0 }) {
			rarely = 8
		}
		h.leaving = h.entered && (!l.Live() || !h.w.healed && h.rng.IntN(rarely) == 0)
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
				x.over = true // revoked
			}
		case heir.promise < h.promise:
			return // the heir's lease has to outlast what the clients believe
		}
	}
	h.ask(registry.Command{Op: registry.OpClose})
	h.closes = h.sequence
}

// chooseHeir returns a member that may adopt what is held, if there is one: rather one
// that has just said that it holds nothing.
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

// ask sends a command with the next beat, and again until it is answered.
func (h *home) ask(c registry.Command) {
	h.sequence++
	c.Session, c.Sequence = registry.SeatID(h.seat), h.sequence
	h.waiting[h.sequence] = c
}

// speak renews the seat, sends what was asked for, and reports.
func (h *home) speak(l *view.Log) {
	if h.seat.ID == [2]uint64{} || h.w.now < h.later {
		return
	}
	h.sequence++
	id := registry.SeatID(h.seat)
	beat := registry.Command{Op: registry.OpRenew, Session: id, Sequence: h.sequence}
	if !h.entered {
		beat.Op, beat.TTL, beat.Live = registry.OpEnter, seatTTL, &registry.Live{Server: h.s.id}
	}
	h.sent[h.sequence] = h.w.now
	commands := []registry.Command{beat}
	for _, sequence := range slices.Sorted(maps.Keys(h.waiting)) {
		if c := h.waiting[sequence]; c.Op != registry.OpQuiet || h.rng.IntN(3) == 0 {
			commands = append(commands, c) // others are late
		}
	}
	report := h.report(id)
	leader := h.s.replica.Leader()
	if leader == 0 {
		return
	}
	to, server := h.w.servers[leader-1], h.s.id
	h.transmit(h.s, to, func() { to.replica.SubmitSeat(to.tellTime(), server, slices.Clone(commands), report) })
}

// report says whom the home reaches, and who has not answered for half a lease.
func (h *home) report(id registry.SessionID) replica.Report {
	report := replica.Report{Seat: id, Epoch: h.epoch}
	for _, other := range h.w.servers {
		me, it := h.s.endpoint(), other.endpoint()
		if other == h.s || other.up() && !other.paused && !h.w.blocked(me, it) && !h.w.blocked(it, me) {
			report.Reaches = append(report.Reaches, other.id)
			delete(h.dumb, other.id)
			continue
		}
		if _, known := h.dumb[other.id]; !known {
			h.dumb[other.id] = h.w.now
		}
		if h.w.now-h.dumb[other.id] > complains {
			report.Complains = append(report.Complains, other.id)
		}
	}
	return report
}

// answer brings the answers of a server to the seats.
func (l *seating) answer(s *server, seats []replica.SeatReply) {
	for _, r := range seats {
		h := l.homes[r.Server]
		if h == nil || !h.runs() || registry.SeatID(h.seat) != r.Session {
			continue
		}
		l.transmit(s, h.s, func() { h.hear(r.Outcome) })
	}
}

// believed returns how long a client relies on what it was told, from the moment at which it
// asked: all but the margin, by a clock that is as slow as it may be. None relies longer.
func believed(remaining int64) int64 {
	margin := max(remaining/10, 100*ms)
	if remaining < 1000*ms {
		margin = remaining / 3
	}
	return (remaining - margin) * million / (million - maxDrift)
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
		// A home that hands over answers its clients no more.
		if h.promise = max(h.promise, sent+believed(o.Result.Remaining)); h.ended[h.seat] && h.promise > h.w.now {
			h.w.violate("seat", "the seat of server %d is renewed for another %d ms and has ended", h.s.id, (h.promise-h.w.now)/ms)
		}
		h.w.stats.Seats.Renewals++
	case o.Result.Code == registry.Unavailable:
		h.later = h.w.now + o.Result.Remaining
	case o.Result.Code == registry.SessionGone && h.entered:
		h.lose()
	}
}

// sessionID draws the id of a session.
func (l *seating) sessionID() (id registry.SessionID) {
	binary.BigEndian.PutUint64(id[:], l.rng.Uint64())
	binary.BigEndian.PutUint64(id[8:], l.rng.Uint64())
	return id
}
