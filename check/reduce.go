package check

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/conclave-io/conclave/process"
)

// Steps of different processes commute: each reads and changes its own process,
// takes the first message of a link that leads to it, and puts messages at the end
// of links that lead from it. So it is enough to let one process q go first, and to
// leave out for now what the others can do, if nothing that they do before q moves
// can give q another choice:
//
//   - what q can do now, it can do later, since nobody takes it away;
//   - what it cannot do now it could later only if a message came over a link that
//     is empty now (on links without order: over any), so no process that can still
//     move before q does may be one that sends to q.
//
// Who sends to whom is learnt: a search begins with the belief that nobody sends to
// anybody, and begins again with what it has seen when that turns out to be wrong.
// A send that the belief does not know would have to be in a schedule that begins
// with steps of other processes; these stay possible after q has moved, so the
// search comes to that send also after it.
//
// Two more conditions keep the verdicts. The steps of q must be invisible: nobody
// asks, enters, leaves or announces a leader in them, so that the order of what
// properties see is never left out. And one of them must lead to a state that is
// still to be expanded, or else a step of another process could be put off for ever
// round a cycle: of the states of such a cycle, one is expanded last (Bošnački, Leue
// and Lluch Lafuente, 2009). Timers that wait for silence run out in no state in which a message is on its
// way to q; so q must have one.

// validateReduction refuses what the argument above does not cover.
func (c *Config) validateReduction() error {
	if c.Reduce != PartialOrder {
		return nil
	}
	for b := range timeouts {
		if c.limit(b) > 0 {
			return fmt.Errorf("check: partial order reduction cannot be used with %s: a fault does not commute with the steps of other processes",
				[...]string{"crashes", "restarts", "drops", "duplicates", "reorders", "wrong suspicions"}[b])
		}
	}
	switch {
	case c.Timeouts > 0:
		return fmt.Errorf("check: partial order reduction cannot be used with a number of timeouts: they would depend on each other")
	case c.Cancels > 0:
		return fmt.Errorf("check: partial order reduction cannot be used with cancels: they would depend on each other")
	case c.Liveness:
		return fmt.Errorf("check: partial order reduction cannot be used with liveness: it leaves out what fairness asks for")
	}
	return nil
}

const visible = requested | entered | left | announced | broken | campaigns | booked

// expandReduced finds the successors of a state that one process leads to, if that
// is enough, and reports whether it is.
func (w *worker) expandReduced(v []uint32, f print) bool {
	if w.layout.inbox >= 0 {
		return false // anybody may be told something at any time
	}
	first := len(w.found)
	active, pending := w.activity(v)
	for q := range w.layout.n {
		if active&(1<<q) == 0 || w.cfg.Timing != Never && w.cfg.Timing != AnyTime && pending&(1<<q) == 0 {
			continue
		}
		if w.disturbers(q, active)&^w.loaded(v, q) != 0 || w.seen(v, q) {
			continue
		}
		w.expandProcess(v, f, q)
		if w.anyOpen(first) {
			return true
		}
		w.forget(first)
	}
	return false
}

// activity returns who can do something, and whom a message is on its way to.
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

// disturbers returns who may send to q before q moves: those who can do something,
// or can be made to by others than q, and send to q at times.
func (w *worker) disturbers(q int, active uint64) uint64 {
	awake := active &^ (1 << q)
	for before := uint64(0); before != awake; {
		before = awake
		for rest := awake; rest != 0; rest &= rest - 1 {
			awake |= w.believed[bits.TrailingZeros64(rest)] &^ (1 << q)
		}
	}
	senders := uint64(0)
	for rest := awake; rest != 0; rest &= rest - 1 {
		if p := bits.TrailingZeros64(rest); w.believed[p]&(1<<q) != 0 {
			senders |= 1 << p
		}
	}
	return senders
}

// loaded returns those who cannot give q another choice by sending, because on a
// link that keeps order something of theirs is before it.
func (w *worker) loaded(v []uint32, q int) uint64 {
	if w.cfg.Unordered {
		return 0
	}
	senders := uint64(0)
	for p := range w.layout.n {
		if p != q && v[w.layout.link(process.ID(p), process.ID(q))] != 0 {
			senders |= 1 << p
		}
	}
	return senders
}

// seen reports whether some step that q can take is visible.
func (w *worker) seen(v []uint32, q int) bool {
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
			if anyVisible(w.deliveries(v[q], take.message)) {
				return true
			}
		}
	}
	return anyVisible(w.list(w.view(v[q]).own))
}

func anyVisible(edges []edge) bool {
	for i := range edges {
		if edges[i].flags&visible != 0 {
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

// anyOpen reports whether some successor, from the given one on, is still to be expanded.
// Of the states of the present depth that is not known; they pass for expanded.
func (w *worker) anyOpen(first int) bool {
	for i := first; i < len(w.found); i++ {
		if !w.visited.closed(w.found[i].print) {
			return true
		}
	}
	return false
}

// learn notes who sends to whom in some edges. What is new to the belief with which
// the search began ends it.
func (w *worker) learn(p process.ID, edges []edge) {
	if w.believed == nil {
		return
	}
	for i := range edges {
		e := &edges[i]
		for _, s := range w.sent[e.sendsAt : e.sendsAt+uint32(e.sendsN)] {
			if q := w.layout.receiver(int(s.slot)); w.believed[p]&(1<<q) == 0 {
				w.surprise(p, q)
			}
		}
	}
}

// reduced searches with one belief after the other, until one holds.
func reduced(ctx context.Context, cfg *Config) *search {
	believed := make([]uint64, cfg.Process.N)
	for {
		s := newSearch(ctx, cfg)
		var mu sync.Mutex
		surprised := false
		next := slices.Clone(believed)
		for _, w := range s.workers {
			w.believed = believed
			w.surprise = func(p, q process.ID) {
				mu.Lock()
				defer mu.Unlock()
				surprised = true
				next[p] |= 1 << q
				s.stop("belief")
			}
		}
		s.run()
		if !surprised {
			return s
		}
		believed = next
	}
}
