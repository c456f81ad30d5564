package host

import (
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// guard is what the log says now about one prefix. An epoch has the guards of its START, but a
// drain takes effect at once (V2).
type guard struct {
	view.Guard
	busy int    // names under it that are held or asked for
	said uint64 // the change for which quiet was sent in this epoch, or 0
}

// Enter gives the server the id of the seat that it will take. All state of an earlier seat is
// discarded (S5).
func (h *Host) Enter(seat [2]uint64) {
	h.discard()
	h.successor = 0
	h.member = view.Member{Server: h.cfg.Server, Seat: seat, Lapsed: true}
	h.enter(seat)
}

// View gives the host the present state of the log about views. It copies what it needs.
func (h *Host) View(now int64, s *view.Log) {
	defer h.guard()
	if h.output.Err != nil {
		return
	}
	h.begin(now)
	own := view.Seat{Server: h.cfg.Server, ID: h.member.Seat}
	switch live := slices.Contains(s.Seats, own); {
	case live:
		h.seated, h.logged = true, true
		h.seat.open = slices.DeleteFunc(h.seat.open, func(o order) bool { return o.Op == registry.OpEnter }) // this is the answer to it
	case h.logged: // otherwise the entry that enters it comes later
		h.abandon("the seat has ended")
		h.serves = serves(s)
		return
	}
	h.seats = slices.Clone(s.Seats)
	if s.Epoch > h.member.Epoch {
		v := view.View{Epoch: s.Epoch, Members: slices.Clone(s.Members)}
		if h.member.Apply(&v) == view.Began {
			h.start(s)
		}
	}
	h.setGuards(s.Guards)
	h.serves = serves(s)
	h.sortOut(s)
	if h.seated && !s.Live() && !h.seat.closing && !h.inherits() {
		h.close(view.Seat{})
	}
	h.finish()
}

// serves reports whether an algorithm guards some prefix, or is about to, and this server knows all
// algorithms (S2).
func serves(l *view.Log) bool {
	return l.Live() && CheckWatch(l.Watch) == nil && !slices.ContainsFunc(l.Guards, func(g view.Guard) bool { return Check(g.Use) != nil || Check(g.Next) != nil })
}

// abandon ends the seat and discards all of its state (S5).
func (h *Host) abandon(why string) {
	if h.handover.named { // only the heir knows what becomes of its sessions
		h.successor = h.handover.to.Server
	} else {
		h.farewell()
	}
	if !h.seat.closing { // giving up the seat is not a failure
		h.pause.next(h.now, h.now-h.seat.since)
	}
	h.discard()
	h.member = view.Member{Server: h.cfg.Server}
	h.gone = why
	h.depart()
}

// discard discards all state of a seat.
func (h *Host) discard() {
	h.endCuts()
	h.discardNear()
	if !h.handover.named { // otherwise the holds continue at the heir
		h.home.reg.ReportLost()
	}
	h.seated, h.logged, h.overflow = false, false, false
	clear(h.names)
	h.local = list{}
	h.prefixes, h.guards, h.todo, h.alarms = nil, nil, nil, nil
	h.home, h.seat, h.turned = newHome(h.cfg.OnHold), seat{}, false
	h.watch = watch{}
	h.handover, h.asides, h.early, h.seats, h.heir, h.told = handover{}, nil, nil, nil, false, 0
	h.table++
	for _, l := range h.links {
		l.reset(h.now)
		l.kept = kept{}
	}
}

// start is M1: the epoch begins without machines, timers and frames. What clients hold or wait
// for stays.
func (h *Host) start(s *view.Log) {
	h.endCuts()
	h.prefixes = nil
	for i := range s.Guards {
		if g := &s.Guards[i]; g.Use.Live() && !g.New {
			h.prefixes = append(h.prefixes, h.newPrefix(g, s.Coordinator))
		} else if !g.New {
			h.prefixes = append(h.prefixes, &guardedPrefix{prefix: g.Prefix})
		}
	}
	h.alarms, h.turned, h.started = h.alarms[:0], false, h.now
	h.seat.open = slices.DeleteFunc(h.seat.open, func(o order) bool { return o.Op == registry.OpTurn || o.Op == registry.OpQuiet })
	for _, in := range h.todo {
		in.listed = false
	}
	h.todo = h.todo[:0]
	for _, l := range h.links {
		l.reset(h.now)
	}
	clear(h.names)
	for in := h.local.first; in != nil; in = in.next {
		h.names[in.name] = in
	}
	h.starts.add(s, h.wall)
	h.observe(s)
	h.inherit(s)
	for i := range h.guards {
		h.guards[i].said = 0 // it was sent in another epoch
	}
	h.setGuards(s.Guards)
	h.force() // includes what was taken over
	h.lookAgain()
	h.work()
	h.takeKept()
	h.handover.tried = nil
	if h.still() && !h.seat.closing {
		h.goOn() // what the other member was told is no longer valid
	}
}

// lookAgain queues all names for processing that clients of this server hold or wait for.
func (h *Host) lookAgain() {
	for in := h.local.first; in != nil; in = in.next {
		h.count(in) // a hold that was taken over counts although no machine was asked
		h.later(in)
	}
}

// later queues a name for processing when there is time and room.
func (h *Host) later(in *instance) {
	if !in.listed {
		in.listed = true
		h.todo = append(h.todo, in)
	}
}

// work processes some of the queued names (M2, M4), while no link is over half full
// (L5).
func (h *Host) work() {
	for done := 0; len(h.todo) > 0 && done < atATime && !h.crowded(); done++ {
		in := h.todo[0]
		h.todo = h.todo[1:]
		if in.listed = false; h.names[in.name] == in {
			h.attend(in)
		}
		if len(h.todo) == 0 {
			h.advance()
		}
	}
	h.advance()
}

// advance goes as far as the member can: it sends RESUMED when all holds have been entered again
// (M3), and asks for wanted names when all members have sent it (M4).
func (h *Host) advance() {
	if h.member.State == view.Resuming && len(h.todo) == 0 {
		h.member.Begun = true
	}
	resumes, opens := h.member.Advance()
	if resumes {
		for to := range process.ID(len(h.member.Members)) {
			if to != h.member.Rank() {
				h.send(to, &frame{kind: frameResumed})
			}
		}
	}
	if opens {
		h.paused, h.opened = h.now-h.started, h.opened+1
		h.lookAgain()
	}
}

// setGuards takes over the present guards. If they have changed, each name is processed again:
// waits under a guard that drains are withdrawn (G3).
func (h *Host) setGuards(guards []view.Guard) {
	same := slices.EqualFunc(h.guards, guards, func(a guard, b view.Guard) bool {
		return a.Prefix == b.Prefix && a.Use == b.Use && a.Change == b.Change && a.New == b.New && a.Conditions == b.Conditions
	})
	if same {
		return
	}
	old := h.guards
	h.guards = make([]guard, len(guards))
	for i := range guards {
		h.guards[i].Guard = guards[i]
		if at := slices.IndexFunc(old, func(g guard) bool { return g.Prefix == guards[i].Prefix }); at >= 0 {
			h.guards[i].said = old[at].said
		}
	}
	h.table++
	for in := h.local.first; in != nil; in = in.next {
		in.busy = false
		h.count(in)
		h.later(in)
	}
	h.force()
}

// force asks the holders to leave for which a forced change waits (G6). For a frozen home the
// heir asks its holders.
func (h *Host) force() {
	if h.still() {
		return
	}
	for in := h.local.first; in != nil; in = in.next {
		if g := h.guardOf(in); in.state.Held && g != nil && g.Change != 0 && g.Conditions.Force {
			h.askToLeave(in, g.Conditions.Reason, g.Conditions.By)
		}
	}
	h.answerAll()
}

// guardOf returns the present guard of a name, or nil.
func (h *Host) guardOf(in *instance) *guard {
	if in.table != h.table {
		in.table, in.under = h.table, int32(h.under(in.name))
	}
	return h.guardAt(int(in.under))
}

// under returns the index of the present guard of a name, or -1.
func (h *Host) under(name string) int {
	at := -1
	for i := range h.guards {
		g := &h.guards[i]
		if strings.HasPrefix(name, g.Prefix) && (at < 0 || len(g.Prefix) > len(h.guards[at].Prefix)) {
			at = i
		}
	}
	return at
}

func (h *Host) guardAt(at int) *guard {
	if at < 0 {
		return nil
	}
	return &h.guards[at]
}

// drains reports whether nothing more may be granted of the name (G3).
func (h *Host) drains(in *instance) bool {
	g := h.guardOf(in)
	return g != nil && g.Change != 0
}

// count counts a name under its guard if it is held or requested.
func (h *Host) count(in *instance) {
	if busy := !h.member.Quiet(&in.state); busy != in.busy {
		in.busy = busy
		if g := h.guardOf(in); g != nil && busy {
			g.busy++
		} else if g != nil {
			g.busy--
		}
	}
}

// sayQuiet is G4.
func (h *Host) sayQuiet() {
	for i := range h.guards {
		g := &h.guards[i]
		if g.Change != 0 && g.Use.Live() && g.said != g.Change && g.busy == 0 && h.member.State != view.Out {
			g.said = g.Change
			h.order(registry.Command{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: h.member.Epoch, Change: g.Change}})
		}
	}
}
