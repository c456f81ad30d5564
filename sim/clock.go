package sim

import "github.com/conclave-io/conclave/process"

// clock is the local clock of a process: since a moment of the run it shows a
// base plus the time since then, faster or slower by its drift.
type clock struct {
	since process.Duration
	base  process.Duration
	shown process.Duration // the last reading, below which it never goes
	drift int              // parts per million
}

const million = 1_000_000

// initClocks makes clocks only for runs in which somebody reads or disturbs one.
func (w *World) initClocks() {
	needed := w.cfg.Spec.Needs.Clock || len(w.cfg.Clocks) > 0
	for i := range w.cfg.Faults {
		needed = needed || w.cfg.Faults[i].Kind == Drift
	}
	if !needed {
		return
	}
	w.clocks = make([]clock, w.config.N)
	for p, c := range w.cfg.Clocks {
		w.clocks[p] = clock{base: c.Offset, drift: c.Drift}
	}
}

// at returns what the clock shows, before it is kept from running backwards.
func (c *clock) at(now process.Duration) process.Duration {
	passed := now - c.since
	return c.base + passed + passed/million*process.Duration(c.drift) +
		passed%million*process.Duration(c.drift)/million
}

// real returns how long a length of the local clock really takes.
func (c *clock) real(length process.Duration) process.Duration {
	rate := process.Duration(million + c.drift)
	return max(1, length/rate*million+length%rate*million/rate)
}

// reading is what a step is told. Other algorithms than those that declare it
// are told nothing. A clock that was set back stands still until it is caught up.
func (w *World) reading(p process.ID) process.Duration {
	if !w.cfg.Spec.Needs.Clock {
		return 0
	}
	c := &w.clocks[p]
	c.shown = max(c.shown, c.at(w.now))
	return c.shown
}

func (w *World) adjust(p process.ID, by process.Duration) {
	if w.clocks != nil {
		w.clocks[p].base += by
	}
}

// drift sets the speed of a clock from now on.
func (w *World) drift(p process.ID, drift int) {
	if w.clocks == nil {
		w.clocks = make([]clock, w.config.N)
	}
	c := &w.clocks[p]
	c.base, c.since, c.drift = c.at(w.now), w.now, drift
}

// Clock returns what the local clock of a process shows, for onlookers.
func (w *World) Clock(p process.ID) process.Duration {
	if w.clocks == nil {
		return w.now
	}
	return w.clocks[p].at(w.now)
}
