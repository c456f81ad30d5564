package processtest

import (
	"strconv"

	"github.com/conclave-io/conclave/process"
)

// armed is a timer and when it runs out.
type armed struct {
	timerKey
	due process.Duration
}

// pass lets whatever is due next happen in its time, if that is not after until:
// a message one delay after it was sent, a timer at its deadline, deliveries
// before timers, each in the order of ranks. It reports whether there was any.
func (w *world) pass(until process.Duration) (bool, error) {
	i, arrives := w.nextFlight()
	p, timer := w.nextTimer()
	switch {
	case i >= 0 && arrives <= until && (p == nil || arrives <= timer.due):
		w.setClock(arrives)
		return true, w.deliver(i)
	case p != nil && timer.due <= until:
		w.setClock(timer.due)
		return true, w.fire(p, timer.timerKey)
	}
	return false, nil
}

// nextFlight returns the message that arrives first, or -1.
func (w *world) nextFlight() (first int, due process.Duration) {
	first = -1
	for i, f := range w.flights {
		at := f.sent + w.c.D()
		if first < 0 || at < due || at == due && f.msg.From < w.flights[first].msg.From {
			first, due = i, at
		}
	}
	return first, due
}

// nextTimer returns the timer that runs out first and whose it is, or nil.
func (w *world) nextTimer() (whose *proc, first armed) {
	for _, p := range w.procs {
		for _, a := range p.timers {
			if whose == nil || a.due < first.due {
				whose, first = p, a
			}
		}
	}
	return whose, first
}

// setClock moves time on. What somebody let happen late does not turn it back.
func (w *world) setClock(to process.Duration) {
	if to <= w.clock {
		return
	}
	w.clock = to
	w.printf("t=%s\n", w.timeText())
}

// timeText is the time in message delays: "7", or "7+1ns" for a little later.
func (w *world) timeText() string {
	d := w.c.D()
	text := strconv.FormatInt(int64(w.clock/d), 10)
	if rest := w.clock % d; rest != 0 {
		text += "+" + strconv.FormatInt(int64(rest), 10) + "ns"
	}
	return text
}
