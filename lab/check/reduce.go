package check

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

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

// belief is what a reduced search assumes about which process sends what. A process
// sends for a cause: a message of some type over some link, a step without a message,
// or a timer that expires. The search learns what each cause leads to. It begins with
// the belief that nothing leads to anything, and restarts with what it has seen when
// the belief turns out to be wrong.
//
// A send that the belief does not know would be in a schedule that begins with steps of
// processes other than those that go first. These steps stay possible after the first
// have moved, so the search also reaches that send later.
type belief struct {
	layout *layout
	types  []int      // of each layer: the number of its first type
	kinds  int        // of messages
	leads  [][]onLink // by cause

	disputed bool  // a leader was announced that its term does not name
	visible  flags // of steps
}

// onLink is a set of messages that may be on a link: their types, as bits.
type onLink struct {
	slot  int
	types uint64
}

// maxKinds is how many types of messages a reduced search can tell apart.
const maxKinds = 64

// kinds returns how many types of messages all layers have.
func (c *Config) kinds() int {
	return len(c.Spec.MessageNames())
}

func newBelief(c *Config, of *layout) *belief {
	b := &belief{layout: of, kinds: c.kinds(), visible: c.visible(false)}
	first := 0
	for _, l := range c.Spec.All() {
		b.types = append(b.types, first)
		first += len(l.Messages)
	}
	b.leads = make([][]onLink, of.links*b.kinds+2*of.n)
	return b
}

// clone returns an independent copy.
func (b *belief) clone() *belief {
	c := *b
	c.leads = make([][]onLink, len(b.leads))
	for i := range b.leads {
		c.leads[i] = slices.Clone(b.leads[i])
	}
	return &c
}

func (b *belief) kind(m *message) int { return b.types[m.Layer] + int(m.Type) - 1 }

// The causes, by number.

func (b *belief) byMessage(slot, kind int) int { return (slot-b.layout.n)*b.kinds + kind }
func (b *belief) byItself(p int) int           { return b.layout.links*b.kinds + p }
func (b *belief) byTimer(p int) int            { return b.layout.links*b.kinds + b.layout.n + p }

// byKind is the cause of what a process does without a message.
func (b *belief) byKind(kind actionKind, p int) int {
	if kind == actFire {
		return b.byTimer(p)
	}
	return b.byItself(p)
}

// knows reports whether a cause is known to lead to a message.
func (b *belief) knows(cause, slot, kind int) bool {
	for _, l := range b.leads[cause] {
		if l.slot == slot {
			return l.types&(1<<kind) != 0
		}
	}
	return false
}

func (b *belief) add(cause, slot, kind int) {
	for i := range b.leads[cause] {
		if l := &b.leads[cause][i]; l.slot == slot {
			l.types |= 1 << kind
			return
		}
	}
	b.leads[cause] = append(b.leads[cause], onLink{slot, 1 << kind})
}

// spread follows what may happen as long as a few processes do nothing.
type spread struct {
	few   uint64
	come  []uint64 // by slot: the types of messages that may be on the link
	todo  []onLink // of these, what still has to be followed
	awake uint64   // the processes that may do something
	meets uint64   // the processes that may give one of the few another choice
}

// disturbers returns processes that may give one of a few processes another choice
// before one of them moves, if there are any.
func (w *worker) disturbers(v []uint32, few uint64) uint64 {
	s := &w.spread
	if s.come == nil {
		s.come = make([]uint64, w.layout.stride)
	}
	clear(s.come)
	s.few, s.todo, s.awake, s.meets = few, s.todo[:0], 0, 0
	for slot := w.layout.n; slot < w.layout.n+w.layout.links; slot++ {
		if v[slot] != 0 && few&(1<<w.layout.receiver(slot)) == 0 {
			w.mayCome(v, onLink{slot, w.kindsOn(v[slot])})
		}
	}
	for p := range w.layout.n {
		if few&(1<<p) == 0 && w.canMove(v[p]) {
			w.mayMove(v, p)
		}
	}
	for len(s.todo) > 0 && s.meets == 0 {
		last := len(s.todo) - 1
		next := s.todo[last]
		s.todo = s.todo[:last]
		for ; next.types != 0; next.types &= next.types - 1 {
			w.mayCause(v, w.believed.byMessage(next.slot, bits.TrailingZeros64(next.types)))
		}
	}
	return s.meets
}

// mayCome notes messages that may be on a link to a process that is not one of the few.
func (w *worker) mayCome(v []uint32, l onLink) {
	s := &w.spread
	if l.types &^= s.come[l.slot]; l.types == 0 {
		return
	}
	s.come[l.slot] |= l.types
	s.todo = append(s.todo, l)
	w.mayMove(v, int(w.layout.receiver(l.slot)))
}

// mayMove notes that a process may do something, and so may reach steps without a
// message.
func (w *worker) mayMove(v []uint32, p int) {
	if w.spread.awake&(1<<p) != 0 {
		return
	}
	w.spread.awake |= 1 << p
	w.mayCause(v, w.believed.byItself(p))
	if w.cfg.Timing == AnyTime {
		w.mayCause(v, w.believed.byTimer(p))
	}
}

// mayCause notes what a cause leads to. A message for one of the few gives it no other
// choice if an earlier one waits on the same link, unless links keep no order.
func (w *worker) mayCause(v []uint32, cause int) {
	s := &w.spread
	for _, l := range w.believed.leads[cause] {
		switch {
		case s.few&(1<<w.layout.receiver(l.slot)) == 0:
			w.mayCome(v, l)
		case v[l.slot] == 0 || w.cfg.Unordered:
			s.meets |= 1 << w.layout.sender(l.slot)
		}
	}
}

// canMove reports whether a process may do something without a message. Timers that wait
// for silence do not count: one of the few has a message on its way to it.
func (w *worker) canMove(local uint32) bool {
	for _, e := range w.list(w.view(local).own) {
		if e.kind != actFire || w.cfg.Timing == AnyTime {
			return true
		}
	}
	return false
}

// kindsOn returns the types of the messages on a link.
func (w *worker) kindsOn(channel uint32) uint64 {
	for int(channel) >= len(w.kinds) {
		w.kinds = append(w.kinds, 0)
	}
	if w.kinds[channel] == 0 {
		w.mu.Lock()
		for _, m := range w.contents(channel) {
			w.kinds[channel] |= 1 << w.believed.kind(w.messages[m])
		}
		w.mu.Unlock()
	}
	return w.kinds[channel]
}

// learn notes what a cause leads to in some edges. Anything that is new to the belief
// ends the search.
func (w *worker) learn(cause int, edges []edge) {
	for i := range edges {
		e := &edges[i]
		if e.flags&disputed != 0 && !w.believed.disputed {
			w.surprise(func(next *belief) { next.disputed, next.visible = true, w.cfg.visible(true) })
		}
		for _, s := range w.sent[e.sendsAt : e.sendsAt+uint32(e.sendsN)] {
			w.mu.Lock()
			kind := w.believed.kind(w.messages[s.message])
			w.mu.Unlock()
			if !w.believed.knows(cause, int(s.slot), kind) {
				w.surprise(func(next *belief) { next.add(cause, int(s.slot), kind) })
			}
		}
	}
}

// reduced searches with one belief after the other, until one holds.
func reduced(ctx context.Context, cfg *Config) *search {
	var believed *belief
	for {
		s := newSearch(ctx, cfg)
		if believed == nil {
			believed = newBelief(cfg, &s.space.layout)
		}
		next := believed.clone()
		surprised := s.believe(believed, next)
		s.run()
		if !*surprised {
			return s
		}
		believed = next
	}
}

// believe makes all workers use a belief, and adds to next what the belief does not
// know.
func (s *search) believe(believed, next *belief) (surprised *bool) {
	surprised = new(bool)
	var mu sync.Mutex
	for _, w := range s.workers {
		w.believed = believed
		w.surprise = func(change func(next *belief)) {
			mu.Lock()
			defer mu.Unlock()
			*surprised = true
			change(next)
			s.stop("belief")
		}
	}
	return surprised
}
