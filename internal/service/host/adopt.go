package host

import (
	"fmt"
	"slices"

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

// asides are the homes of leaving members that this server has been offered, and the seats whose
// homes it has taken over (P2).
type asides struct {
	*self
	home  *home
	links *links
	seat  *seat

	inheritance
}

// inheritance is what has been offered to one seat.
type inheritance struct {
	list  []*aside // in the order in which they came
	early []early  // requests in homes that are not set aside any more
	taken []adopted
	heir  bool   // the log names this seat as an heir
	told  uint64 // the epoch in which it was told that the seat has taken over, or 0
}

// reset forgets them with the seat (S5).
func (as *asides) reset() { as.inheritance = inheritance{} }

// seats returns those whose clients find their sessions here: seats taken over recently,
// and seats that may be taken over (H2).
func (as *asides) seats() (seats []registry.SessionID) {
	for _, a := range as.list {
		if a.whole {
			seats = append(append(seats, registry.SeatID(a.seat)), a.seats...)
		}
	}
	for _, a := range as.taken {
		if as.now-a.at < 2*as.cfg.lease() { // otherwise its clients are past their deadlines
			seats = append(seats, a.seat)
		}
	}
	return seats
}

// inherits reports whether this server may be the heir of a member. It must not close its seat
// before it knows.
func (as *asides) inherits() bool {
	return slices.ContainsFunc(as.list, func(a *aside) bool { return a.said })
}

// asideOf returns the home set aside to which a session belongs, or nil.
func (as *asides) of(id registry.SessionID) *aside {
	if at := slices.IndexFunc(as.list, func(a *aside) bool { return a.sessions[id] }); at >= 0 {
		return as.list[at]
	}
	return nil
}

// onHandover receives a part of the home of a member. When all parts have come they are set
// aside, and the seat is renewed: only a renewal sent after that shows how long the seat lasts.
func (as *asides) receive(from process.ID, f *frame) {
	seat := as.member.Members[from]
	at := slices.IndexFunc(as.list, func(a *aside) bool { return a.seat == seat })
	if at < 0 {
		at = len(as.list)
		as.list = append(as.list, &aside{seat: seat})
	} else if as.list[at].whole { // it was not taken over, and is now handed over again
		as.list[at] = &aside{seat: seat, early: as.list[at].early}
	}
	a := as.list[at]
	if len(a.data) <= maxHandover {
		a.data = append(a.data, f.message...)
	}
	if !f.last {
		return
	}
	if as.leaving != stays || as.seat.closing || as.complete(a) != nil {
		as.drop(at)
		as.links.send(from, &frame{kind: frameRefused})
	}
}

// complete checks the complete data, and returns what is wrong with it.
func (as *asides) complete(a *aside) error {
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
	a.whole, a.at, a.after = true, as.leaseClock(), as.seat.sequence
	return nil
}

// awaits reports whether a member waits for a renewal of this seat.
func (as *asides) awaits() bool {
	return slices.ContainsFunc(as.list, func(a *aside) bool { return a.whole && !a.said })
}

// adopt tells members that their homes are set aside and that this seat outlasts the promises to
// their clients, because the given command has renewed the seat.
func (as *asides) adopt(command uint64, remaining int64) {
	for _, a := range as.list {
		if a.whole && !a.said && a.after < command && remaining >= a.promise {
			a.said = true
			as.links.send(as.member.RankOf(a.seat.Server), &frame{kind: frameAdopted})
		}
	}
}

// refuseAsides gives up the homes that this server need not take over, because it leaves itself.
func (as *asides) refuse() {
	for at := 0; at < len(as.list); {
		a := as.list[at]
		if a.said || !a.whole {
			at++
			continue
		}
		as.drop(at)
		as.links.send(as.member.RankOf(a.seat.Server), &frame{kind: frameRefused})
	}
}

// inherit takes over, at a START, the homes for which the log names this server as the heir,
// before anything is entered again. It drops the homes that have to be handed over again, because
// the epoch has changed (P2).
func (as *asides) inherit(s *view.Log) {
	own := as.ownSeat()
	for at := 0; at < len(as.list); {
		a := as.list[at]
		if heir, _ := s.HeirOf(a.seat); heir == own && a.whole {
			as.take(a)
			as.home.obey() // the member may have gone by older rules
			as.drop(at)
		} else if !a.said {
			as.drop(at)
		} else {
			at++
		}
	}
}

// sortOut drops the homes of seats that have ended with a different heir or none, and answers
// the clients that have asked for them.
func (as *asides) sortOut(s *view.Log) {
	for at := 0; at < len(as.list); {
		if slices.Contains(s.Seats, as.list[at].seat) {
			at++
			continue
		}
		as.drop(at)
	}
	own := as.ownSeat()
	as.heir = slices.ContainsFunc(s.Heirs, func(x view.Heir) bool { return x.Seat == own && x.Epoch < as.member.Epoch })
	waiting := as.early
	as.early = nil
	as.home.resubmit(waiting)
}

// drop removes a home from those that are set aside. Clients that have asked for it are
// answered when all homes are sorted out.
func (as *asides) drop(at int) {
	as.early = append(as.early, as.list[at].early...)
	as.list = slices.Delete(as.list, at, at+1)
}

// take takes over a home, and remembers for a while that its clients are here.
func (as *asides) take(a *aside) {
	as.home.merge(a.home, a.at)
	for _, seat := range append(a.seats, registry.SeatID(a.seat)) {
		as.taken = append(as.taken, adopted{seat, as.now})
	}
	as.taken = slices.DeleteFunc(as.taken, func(x adopted) bool { return as.now-x.at >= 2*as.cfg.lease() })
}

// sayInherited tells the log that this server has taken over the homes that it inherits, so that
// the log may forget them.
func (as *asides) sayInherited() {
	if as.heir && as.told != as.member.Epoch {
		as.told = as.member.Epoch
		as.seat.order(registry.Command{Op: registry.OpQuiet, Guarding: &registry.Guarding{Epoch: as.member.Epoch}})
	}
}
