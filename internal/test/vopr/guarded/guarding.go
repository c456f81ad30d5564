// Package guarded is the part of a world in which algorithms guard names: with the hosts that servers
// run, or with a stand-in that only has their seats.
package guarded

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/world"
)

// ms is a millisecond, in ns.
const ms = int64(1e6)

// guarding is the common part of plans in which algorithms guard names. It contains an operator who
// changes the guards, and the judge's record of seats and views.
type guarding struct {
	w          *world.World
	rng        *rand.Rand
	algorithms []string // the algorithms from which the operator chooses
	ended      map[view.Seat]bool
	views      map[uint64]*view.Log // by epoch, as first observed
	last       *view.Log            // state at the newest entry that a server has applied
	asked      uint64               // number of requests of the operator
	often      int64                // approximate maximum time between two of them, in ms

	// over checks a seat that ends. seatless reports whether a voter may still be without a seat.
	over     func(seat view.Seat, log *view.Log)
	seatless func(id uint64) bool
	hosts    *hosting // nil if a stand-in replaces the algorithms
}

func newGuarding(w *world.World, algorithms ...string) guarding {
	return guarding{
		w: w, rng: rand.New(rand.NewPCG(w.Plan.Seed, 7)), algorithms: algorithms, often: 4000,
		ended: make(map[view.Seat]bool), views: make(map[uint64]*view.Log), last: new(view.Log),
	}
}

// operate changes a guard from time to time.
func (l *guarding) operate() {
	if l.w.Healed {
		return
	}
	if l.w.Plan.Steady && l.last.Find("live/") == nil {
		l.w.After(500*ms, l.operate)
		l.setGuard("live/", registry.Guarding{Use: l.drawUse()})
		return
	}
	l.w.After((500+l.rng.Int64N(l.often))*ms, l.operate)
	l.setGuard(l.drawGuard())
}

func (l *guarding) drawUse() (u view.Use) {
	u.Algorithm = l.algorithms[l.rng.IntN(len(l.algorithms))]
	if u.Algorithm == "k-ricart-agrawala" {
		u.Options = fmt.Sprint("k=", world.GuardedUnits)
	}
	if l.hosts != nil {
		u = l.hosts.watches.coordinated(u)
	}
	return u
}

func (l *guarding) drawGuard() (prefix string, how registry.Guarding) {
	prefix = guardedPrefixes[l.rng.IntN(len(guardedPrefixes))]
	what := l.rng.IntN(6)
	if l.hosts != nil && what < 3 && l.rng.IntN(2) == 0 {
		what = 5 // in plans with hosts, names are guarded by an algorithm more often
	}
	switch what {
	case 0, 1:
	case 2:
		how.Remove = true
	default:
		how.Use = l.drawUse()
	}
	if how.Force = l.rng.IntN(4) == 0; l.rng.IntN(3) == 0 {
		how.Wait = (300 + l.rng.Int64N(3000)) * ms
	}
	return prefix, how
}

func (l *guarding) setGuard(prefix string, how registry.Guarding) {
	leader := l.w.Leader()
	if leader == nil {
		return
	}
	l.asked++
	c := registry.Command{Op: registry.OpGuard, Name: prefix, Value: "chance", Guarding: &how, By: &registry.Origin{Actor: "cert:operator", Request: [16]byte{0: 1, 14: byte(l.asked >> 8), 15: byte(l.asked)}}}
	leader.Receive(func() { leader.Replica.Submit(leader.TellTime(), world.OperatorConn, []registry.Command{c}) })
}

// Heal sets a guard with an algorithm, so that homes are necessary until the end. It retries until
// the guard is in effect.
func (l *guarding) Heal() {
	l.w.After(2000*ms, func() {
		l.setGuard("live/", registry.Guarding{Use: view.Use{Algorithm: "central"}})
		if g := l.last.Find("live/"); g == nil || !g.Use.Guarded() || g.Change != 0 {
			l.Heal()
		}
	})
}

// Unfinished returns what must still happen before the run is quiet, or "". All servers that may
// have a seat must have one, and no guard may be changing.
func (l *guarding) Unfinished(leader *world.Server) string {
	log := leader.Replica.Registry().Guarded()
	if !log.Covering("live/").Guarded() {
		return "no algorithm guards live/"
	}
	for _, g := range log.Guards {
		if g.Change != 0 {
			return fmt.Sprintf("the guard of %s changes", g.Prefix)
		}
	}
	for _, id := range leader.Replica.Status().Voters {
		if seated := slices.ContainsFunc(log.Members, func(m view.Seat) bool { return m.Server == id }); !seated && !l.seatless(id) {
			return fmt.Sprintf("server %d has no seat", id)
		}
	}
	return ""
}

// Watch checks what a server has applied.
func (l *guarding) Watch(s *world.Server, first bool) {
	log := s.Replica.Registry().Guarded()
	switch present, known := l.views[log.Epoch]; {
	case !known:
		l.views[log.Epoch] = log.Clone()
		l.w.Stats.Seats.Epochs++
	case !slices.Equal(present.Members, log.Members):
		l.w.Violate("view", "epoch %d has the members %v on server %d, and %v on another", log.Epoch, log.Members, s.ID, present.Members)
	case present.Coordinator != log.Coordinator, present.Watch != log.Watch && len(log.Members) > 0:
		l.w.Violate("view", "server %d coordinates epoch %d with %q on server %d, and %d with %q on another", log.Coordinator, log.Epoch, log.Watch.Algorithm, s.ID, present.Coordinator, present.Watch.Algorithm)
	}
	for i, m := range log.Members {
		if i > 0 && log.Members[i-1].Server == m.Server {
			l.w.Violate("view", "epoch %d has two seats of server %d", log.Epoch, m.Server)
		}
	}
	if first {
		l.advance(log)
	}
}

// advance checks the changes by the newest entry.
func (l *guarding) advance(log *view.Log) {
	for _, seat := range l.last.Seats {
		if !slices.Contains(log.Seats, seat) {
			l.ended[seat] = true
			l.over(seat, log)
		}
	}
	for _, g := range log.Guards {
		if before := l.last.Find(g.Prefix); before != nil && before.Use.Guarded() != g.Use.Guarded() {
			l.w.Stats.Seats.Switched++
		}
	}
	if l.hosts != nil {
		l.hosts.unheld(log)
	}
	if log.Coordinator != l.last.Coordinator {
		l.w.Stats.Hosts.Elected++
	}
	l.last = log.Clone()
}

// Transmit sends something from one server to another. The replica there processes it in its next
// turn. It may be lost or delayed.
func (l *guarding) Transmit(from, to *world.Server, do func()) {
	if from == to {
		to.Receive(do)
		return
	}
	a, b, late := from.Endpoint(), to.Endpoint(), 100_000+l.rng.Int64N(2*ms)
	if l.rng.IntN(50) == 0 {
		late += l.rng.Int64N(200 * ms)
	}
	if l.w.Plan.Steady && from.Narrow > 0 { // it waits behind other messages to that server
		late += from.Narrow * l.rng.Int64N(20)
	}
	if l.w.Net.Blocked(a, b) || l.rng.IntN(60) == 0 {
		return
	}
	l.w.After(late, func() {
		if !l.w.Net.Blocked(a, b) {
			to.Receive(do)
		}
	})
}
