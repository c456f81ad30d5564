package sim

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Moment is a place in a run.
type Moment struct {
	Records uint64 // that were written before
	At      process.Duration
}

// Control is when a run came under the control of its schedule, and when each turn was taken.
type Control struct {
	Begins Moment
	Turns  []Moment
}

// Control returns nil while the run proceeds by itself, or if it has no schedule.
func (w *World) Control() *Control {
	if w.hand == nil {
		return nil
	}
	return w.hand.control
}

// initHand holds what is scheduled from now on, or says when that begins.
func (w *World) initHand() {
	if w.cfg.Schedule == nil {
		return
	}
	w.hand = &hand{Schedule: w.cfg.Schedule, earliest: map[uint64]process.Duration{}, gone: map[uint64]bool{}}
	if w.hand.Record > 0 {
		return // see advance
	}
	if w.hand.After < 0 {
		w.takeControl()
		return
	}
	w.push(w.hand.After, classBackground, 0, itemControl)
}

// takesControl takes control if the event that has just happened wrote the record after which
// that is due, or if none is left that could write it. It reports whether it did.
func (w *World) takesControl(last bool) bool {
	h := w.hand
	if h.Record == 0 || h.control != nil || w.reason != 0 || !last && w.records < h.Record {
		return false
	}
	w.current = 0
	w.takeControl()
	return true
}

// takeControl holds everything that waits for turns from now on.
func (w *World) takeControl() {
	w.hand.holds, w.hand.control = true, &Control{Begins: Moment{w.records, w.now}}
	w.move(w.holdable(), func(at process.Duration) process.Duration { return at + parking })
	w.scheduleTurn()
}

// holdable returns the items in the queue that wait for turns, in the order in which
// they would happen by themselves.
func (w *World) holdable() []item { return w.scheduled(func(it *item) bool { return held(it.kind) }) }

// scheduled returns the items in the queue that are wanted, in the order of their times.
func (w *World) scheduled(wanted func(it *item) bool) []item {
	var all []item
	w.queue.each(func(it *item) {
		if wanted(it) && !(it.revocable && w.stale(it)) {
			all = append(all, *it)
		}
	})
	slices.SortFunc(all, func(a, b item) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq)) })
	return all
}

// parked returns the time at which the queue keeps an item that would happen at the
// given time by itself.
func (w *World) parked(at process.Duration, kind itemKind) process.Duration {
	if w.hand == nil || !w.hand.holds || at >= parking || !held(kind) {
		return at
	}
	return at + parking
}

// remove takes items out of the queue.
func (w *World) remove(items ...item) {
	for i := range items {
		w.hand.gone[items[i].seq] = true
	}
	w.queue.each(func(it *item) { it.revocable = it.revocable || w.hand.gone[it.seq] })
	for range items {
		w.queue.cancel()
	}
}

// move puts items at other times, in their order.
func (w *World) move(items []item, to func(at process.Duration) process.Duration) {
	w.remove(items...)
	for i := range items {
		it := &items[i]
		moved := w.queue.push(int64(to(process.Duration(it.at))), it.order)
		it.seq, it.at = moved.seq, moved.at
		*moved = *it
		switch it.kind {
		case itemTimer:
			w.timers.set(timerKey(process.ID(it.proc), it.layer, process.Timer(it.arg)), int64(it.seq), nil)
		case itemExit:
			w.clients[it.proc].exit = it.seq
		}
	}
}
