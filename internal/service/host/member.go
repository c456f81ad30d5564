package host

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
)

// Enter gives the server the id of the seat that it will take. All state of an earlier seat is
// discarded (S5).
func (h *Host) Enter(seat [2]uint64) {
	h.discard()
	h.successor = 0
	h.member = view.Member{Server: h.cfg.Server, Seat: seat, Lapsed: true}
	h.seat.enter()
}

// View gives the host the present state of the log about views. It copies what it needs.
func (h *Host) View(now int64, s *view.Log) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	switch live := slices.Contains(s.Seats, h.ownSeat()); {
	case live:
		h.seat.entered()
	case h.seat.logged: // otherwise the entry that enters it comes later
		h.abandon("the seat has ended")
		h.serves = serves(s)
		return
	}
	h.departure.seats = slices.Clone(s.Seats)
	if s.Epoch > h.member.Epoch {
		v := view.View{Epoch: s.Epoch, Members: slices.Clone(s.Members)}
		if h.member.Apply(&v) == view.Began {
			h.start(s)
		}
	}
	h.setGuards(s.Guards)
	h.serves = serves(s)
	h.asides.sortOut(s)
	if h.seat.confirmed && !s.Guarded() && !h.seat.closing && !h.asides.inherits() {
		h.departure.close(view.Seat{})
	}
	h.finish()
}

// serves reports whether an algorithm guards some prefix, or is about to, and this server knows all
// algorithms (S2).
func serves(l *view.Log) bool {
	return l.Guarded() && CheckWatch(l.Watch) == nil && !slices.ContainsFunc(l.Guards, func(g view.Guard) bool { return Check(g.Use) != nil || Check(g.Next) != nil })
}

// start is M1: the epoch begins without machines, timers and frames. What clients hold or wait
// for stays.
func (h *Host) start(s *view.Log) {
	h.cuts.abandon()
	h.machines.begin(s)
	h.seat.begin()
	h.links.begin()
	h.starts.add(s, h.wall)
	h.watch.begin(s)
	h.asides.inherit(s)
	h.guards.begin()
	h.setGuards(s.Guards)
	h.home.force() // includes what was taken over
	h.machines.lookAgain()
	h.machines.work()
	h.takeKept()
	h.departure.begin()
}

// setGuards takes over the present guards. If they have changed, each name is processed again:
// waits under a guard that drains are withdrawn (G3).
func (h *Host) setGuards(guards []view.Guard) {
	if h.guards.set(guards) {
		h.machines.recount()
		h.home.force()
	}
}

// abandon ends the seat and discards all of its state (S5).
func (h *Host) abandon(why string) {
	if h.departure.named { // only the heir knows what becomes of its sessions
		h.successor = h.departure.to.Server
	} else {
		h.home.farewell()
	}
	if !h.seat.closing { // giving up the seat is not a failure
		h.pause.next(h.now, h.now-h.seat.since)
	}
	h.discard()
	h.member = view.Member{Server: h.cfg.Server}
	h.gone = why
	h.departure.depart()
}

// discard discards all state of a seat.
func (h *Host) discard() {
	h.cuts.abandon()
	h.nears.discard()
	if !h.departure.named { // otherwise the holds continue at the heir
		h.home.reg.ReportLost()
	}
	h.machines.reset()
	h.guards.reset()
	h.home.reset()
	h.seat.reset()
	h.watch.reset()
	h.departure.reset()
	h.asides.reset()
	h.links.reset()
}
