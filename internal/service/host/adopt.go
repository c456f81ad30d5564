package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/process"
)

// aside is the home of a leaving member, set aside until the log says whether this server is
// its heir (P2).
type aside struct {
	seat  view.Seat
	data  []byte // the parts received so far
	early []early

	// The following fields are known when the last part has come.
	whole    bool
	home     []byte               // in data
	seats    []registry.SessionID // that the member has adopted
	sessions map[registry.SessionID]bool
	promise  int64  // the longest promise to a client, counted from at
	at       int64  // by the lease clock
	after    uint64 // the newest command of our own seat at that time
	said     bool   // the member was sent ADOPTED, and may have told the log
}

// adopted is a seat whose clients now have this home.
type adopted struct {
	seat registry.SessionID
	at   int64 // since when
}

// Adopted returns the seats whose clients find their sessions here: seats taken over recently,
// and seats that may be taken over (H2).
func (h *Host) Adopted() (seats []registry.SessionID) {
	for _, a := range h.asides {
		if a.whole {
			seats = append(append(seats, registry.SeatID(a.seat)), a.seats...)
		}
	}
	for _, a := range h.home.adopted {
		if h.now-a.at < 2*h.cfg.lease() { // otherwise its clients are past their deadlines
			seats = append(seats, a.seat)
		}
	}
	return seats
}

// inherits reports whether this server may be the heir of a member. It must not close its seat
// before it knows.
func (h *Host) inherits() bool {
	return slices.ContainsFunc(h.asides, func(a *aside) bool { return a.said })
}

// asideOf returns the home set aside to which a session belongs, or nil.
func (h *Host) asideOf(id registry.SessionID) *aside {
	if at := slices.IndexFunc(h.asides, func(a *aside) bool { return a.sessions[id] }); at >= 0 {
		return h.asides[at]
	}
	return nil
}

// onHandover receives a part of the home of a member. When all parts have come they are set
// aside, and the seat is renewed: only a renewal sent after that shows how long the seat lasts.
func (h *Host) onHandover(from process.ID, f *frame) {
	seat := h.member.Members[from]
	at := slices.IndexFunc(h.asides, func(a *aside) bool { return a.seat == seat })
	if at < 0 {
		at = len(h.asides)
		h.asides = append(h.asides, &aside{seat: seat})
	} else if h.asides[at].whole { // it was not taken over, and is now handed over again
		h.asides[at] = &aside{seat: seat, early: h.asides[at].early}
	}
	a := h.asides[at]
	if len(a.data) <= maxHandover {
		a.data = append(a.data, f.message...)
	}
	if !f.last {
		return
	}
	if h.leaving != stays || h.seat.closing || h.complete(a) != nil {
		h.dropAside(at)
		h.send(from, &frame{kind: frameRefused})
	}
}

// complete checks the complete data, and returns what is wrong with it.
func (h *Host) complete(a *aside) error {
	r := wire.NewReader(a.data)
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		var id registry.SessionID
		r.Fixed(id[:])
		a.seats = append(a.seats, id)
	}
	if r.Err() != nil || len(a.data) > maxHandover {
		return fmt.Errorf("host: handover: %d bytes: %w", len(a.data), r.Err())
	}
	a.home = r.Rest()
	probe := registry.NewHome()
	sessions, _, err := probe.Merge(a.home, new(registry.Effects))
	if err == nil {
		err = probe.Check()
	}
	if err != nil {
		return err
	}
	a.sessions = make(map[registry.SessionID]bool, len(sessions))
	for i := range sessions {
		a.sessions[sessions[i].ID] = true
		a.promise = max(a.promise, sessions[i].Left)
	}
	a.whole, a.at, a.after = true, h.leaseClock(), h.seat.sequence
	return nil
}

// awaits reports whether a member waits for a renewal of this seat.
func (h *Host) awaits() bool {
	return slices.ContainsFunc(h.asides, func(a *aside) bool { return a.whole && !a.said })
}

// adopt tells members that their homes are set aside and that this seat outlasts the promises to
// their clients, because the given command has renewed the seat.
func (h *Host) adopt(command uint64, remaining int64) {
	for _, a := range h.asides {
		if a.whole && !a.said && a.after < command && remaining >= a.promise {
			a.said = true
			h.send(h.member.RankOf(a.seat.Server), &frame{kind: frameAdopted})
		}
	}
}

// refuseAsides gives up the homes that this server need not take over, because it leaves itself.
func (h *Host) refuseAsides() {
	for at := 0; at < len(h.asides); {
		a := h.asides[at]
		if a.said || !a.whole {
			at++
			continue
		}
		h.dropAside(at)
		h.send(h.member.RankOf(a.seat.Server), &frame{kind: frameRefused})
	}
}

// inherit takes over, at a START, the homes for which the log names this server as the heir,
// before anything is entered again. It drops the homes that have to be handed over again, because
// the epoch has changed (P2).
func (h *Host) inherit(s *view.Log) {
	own := view.Seat{Server: h.cfg.Server, ID: h.member.Seat}
	for at := 0; at < len(h.asides); {
		a := h.asides[at]
		if heir, _ := s.HeirOf(a.seat); heir == own && a.whole {
			h.merge(a)
			h.obey() // the member may have gone by older rules
			h.dropAside(at)
		} else if !a.said {
			h.dropAside(at)
		} else {
			at++
		}
	}
}

// sortOut drops the homes of seats that have ended with a different heir or none, and answers
// the clients that have asked for them.
func (h *Host) sortOut(s *view.Log) {
	for at := 0; at < len(h.asides); {
		if slices.Contains(s.Seats, h.asides[at].seat) {
			at++
			continue
		}
		h.dropAside(at)
	}
	own := view.Seat{Server: h.cfg.Server, ID: h.member.Seat}
	h.heir = slices.ContainsFunc(s.Heirs, func(x view.Heir) bool { return x.Seat == own && x.Epoch < h.member.Epoch })
	waiting := h.early
	h.early = nil
	h.resubmit(waiting)
}

// dropAside removes a home from those that are set aside. Clients that have asked for it are
// answered when all homes are sorted out.
func (h *Host) dropAside(at int) {
	h.early = append(h.early, h.asides[at].early...)
	h.asides = slices.Delete(h.asides, at, at+1)
}

// merge takes over a home. Its sessions stay alive for the time that they were promised,
// counted from when the last part came.
func (h *Host) merge(a *aside) {
	sessions, names, err := h.home.reg.Merge(a.home, &h.home.fx)
	process.Assert(err == nil, "a home that is taken over was looked at, and holds what no other does")
	for _, s := range sessions {
		s.TTL = max(1, s.Left-(h.leaseClock()-a.at))
		h.home.leases.Begin(s.Session, h.leaseClock())
	}
	for _, name := range names {
		in := h.names[name]
		if in == nil {
			in = &instance{name: strings.Clone(name)}
			h.names[in.name] = in
		}
		in.state.Held, in.state.Wanted = h.home.reg.Demand(name)
		in.state.Held = in.state.Held || in.near != nil // the new waiters wait for that holder
		in.move(&h.local)
	}
	for _, seat := range append(a.seats, registry.SeatID(a.seat)) {
		h.home.adopted = append(h.home.adopted, adopted{seat, h.now})
	}
	h.home.adopted = slices.DeleteFunc(h.home.adopted, func(x adopted) bool { return h.now-x.at >= 2*h.cfg.lease() })
}

// sayInherited tells the log that this server has taken over the homes that it inherits, so that
// the log may forget them.
func (h *Host) sayInherited() {
	if h.heir && h.told != h.member.Epoch {
		h.told = h.member.Epoch
		h.order(registry.Command{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: h.member.Epoch}})
	}
}
