package check

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Steps of different processes commute: each reads and changes only its own process,
// takes the first message of a link that leads to it, and appends messages to links
// that lead from it. So it is enough to let a few processes go first, and to leave out
// for now what the others can do. The condition is that nothing the others do before
// one of the few moves can give one of these another choice:
//
//   - what the few can do now, they can do later, since nobody takes it away;
//   - what they cannot do now they could later only if a message came over a link that
//     is empty now (on links without order: over any). So whoever may send one, as
//     things stand, is one of the few as well.
//
// Which process may send what, and for which cause, is learned; see belief.
//
// Two more conditions preserve the verdicts. The steps of the few must be invisible: no
// process asks, enters, leaves or announces a leader in them, so that the order of what
// properties see is never left out. And one of them must lead to a state that still has
// to be expanded. Otherwise a step of another process could be postponed forever round
// a cycle: of the states of such a cycle, one is expanded last (Bošnački, Leue and
// Lluch Lafuente, 2009). Timers that wait for silence do not expire in a state in which
// a message is in flight to one of the few; so there must be one.

// validateReduction refuses what the argument above does not cover.
func (c *Config) validateReduction() error {
	if c.Reduce != PartialOrder {
		return nil
	}
	for b := crashes; b <= suspicions; b++ {
		if c.limit(b) > 0 {
			return fmt.Errorf("check: partial order reduction cannot be used with %s: a fault does not commute with the steps of other processes",
				[...]string{"crashes", "restarts", "drops", "duplicates", "reorders", "wrong suspicions"}[b-crashes])
		}
	}
	switch {
	case c.Timeouts > 0:
		return fmt.Errorf("check: partial order reduction cannot be used with a number of timeouts: they would depend on each other")
	case c.Cancels > 0:
		return fmt.Errorf("check: partial order reduction cannot be used with cancels: they would depend on each other")
	case c.Forgets > 0:
		return fmt.Errorf("check: partial order reduction cannot be used with forgets: they would depend on each other")
	case c.kinds() > maxKinds:
		return fmt.Errorf("check: partial order reduction tells %d types of messages apart, and %s has %d", maxKinds, c.Spec.Name, c.kinds())
	case c.checks(process.StateInvariant):
		return fmt.Errorf("check: partial order reduction cannot be used with an invariant: it leaves out states; name the properties to check")
	case c.judgesDeadlocks():
		return fmt.Errorf("check: partial order reduction cannot be used with deadlocks: it leaves out states that they are compared with; name the properties to check")
	case c.family() == process.Agreement:
		return fmt.Errorf("check: partial order reduction cannot be used with consensus: which value is decided depends on the order of steps")
	case c.transaction():
		return fmt.Errorf("check: partial order reduction cannot be used with transactions: whether one aborts depends on the order of steps")
	case c.Liveness:
		return fmt.Errorf("check: partial order reduction cannot be used with liveness: it leaves out what fairness asks for")
	}
	return nil
}

// visible are the steps whose order matters to properties. Announcements of leaders do
// not matter if each leader is the one that its term names: then no two are announced
// for one term, in any order, and no other process affects whether a leader is valid.
// They matter only if two must not lead at the same time, or in a round.
func (c *Config) visible(disputed bool) flags {
	all := requested | entered | left | broken | campaigns | booked
	if disputed || c.checks(process.SingleLeader) || c.checks(process.RoundAgreement) {
		all |= announced
	}
	return all
}

// expandReduced finds the successors of a state that a few processes lead to, if those
// are enough, and reports whether they are. It tries one process before several.
func (w *worker) expandReduced(v []uint32, f print) bool {
	if w.layout.inbox >= 0 {
		return false // any process may get news at any time
	}
	active, pending := w.activity(v)
	w.several = w.several[:0]
	for rest := active; rest != 0; rest &= rest - 1 {
		if w.takes(v, rest&-rest, w.believed.visible) {
			continue
		}
		few := w.undisturbed(v, rest&-rest, active)
		switch silent := w.cfg.Timing != Never && w.cfg.Timing != AnyTime; {
		case few == active || silent && few&pending == 0 || slices.Contains(w.several, few):
		case few&(few-1) != 0:
			w.several = append(w.several, few)
		case w.suffices(v, f, few):
			return true
		}
	}
	slices.SortStableFunc(w.several, func(a, b uint64) int { return bits.OnesCount64(a) - bits.OnesCount64(b) })
	return slices.ContainsFunc(w.several, func(few uint64) bool {
		return !w.takes(v, few, w.believed.visible) && w.suffices(v, f, few)
	})
}

// suffices finds the successors that a few processes lead to, and removes them again if
// all of them are already expanded.
func (w *worker) suffices(v []uint32, f print, few uint64) bool {
	first := len(w.found)
	for ; few != 0; few &= few - 1 {
		w.expandProcess(v, f, bits.TrailingZeros64(few))
	}
	if w.anyOpen(first) {
		return true
	}
	w.forget(first)
	return false
}

// activity returns the processes that can do something, and those that a message is in
// flight to.
func (w *worker) activity(v []uint32) (active, pending uint64) {
	timers := w.timersMayFire(v)
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		if v[slot] != 0 {
			pending |= 1 << w.layout.receiver(slot)
		}
	}
	active = pending
	for p := range w.layout.n {
		for _, e := range w.list(w.view(v[p]).own) {
			if e.kind != actFire || timers {
				active |= 1 << p
			}
		}
	}
	return active, pending
}

// undisturbed adds to some processes those that may give them another choice, and so
// on, and returns those of them that can do something.
func (w *worker) undisturbed(v []uint32, few, active uint64) uint64 {
	for {
		more := w.disturbers(v, few)
		if few |= more; more == 0 || few&active == active {
			return few & active
		}
	}
}

// takes reports whether one of a few processes can take a step with some flags.
func (w *worker) takes(v []uint32, few uint64, of flags) bool {
	for ; few != 0; few &= few - 1 {
		q := bits.TrailingZeros64(few)
		if anyOf(w.list(w.view(v[q]).own), of) || w.receives(v, q, of) {
			return true
		}
	}
	return false
}

// receives reports whether a message that q may receive now leads to a step with some
// flags.
func (w *worker) receives(v []uint32, q int, of flags) bool {
	for p := range w.layout.n {
		if p == q {
			continue
		}
		slot := w.layout.link(process.ID(p), process.ID(q))
		if v[slot] == 0 {
			continue
		}
		takes := w.link(v[slot]).takes
		if !w.cfg.Unordered {
			takes = takes[:1]
		}
		for _, take := range takes {
			if anyOf(w.deliveries(v[q], take.message), of) {
				return true
			}
		}
	}
	return false
}

func anyOf(edges []edge, of flags) bool {
	for i := range edges {
		if edges[i].flags&of != 0 {
			return true
		}
	}
	return false
}

// expandProcess finds the successors that one process leads to.
func (w *worker) expandProcess(v []uint32, f print, q int) {
	for p := range w.layout.n {
		if p == q {
			continue
		}
		if slot := w.layout.link(process.ID(p), process.ID(q)); v[slot] != 0 {
			w.expandSlot(v, f, slot)
		}
	}
	w.expandOwn(v, f, q, w.timersMayFire(v))
}

// anyOpen reports whether some successor, from the given one on, still has to be
// expanded. For states of the present depth that is unknown; they count as expanded.
func (w *worker) anyOpen(first int) bool {
	for i := first; i < len(w.found); i++ {
		if !w.visited.closed(w.found[i].print) {
			return true
		}
	}
	return false
}
