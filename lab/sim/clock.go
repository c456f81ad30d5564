package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

// clock is the local clock of a process. Since a moment of the run it shows a base plus
// the time since then, faster or slower by its drift, plus the part of the last
// correction that it has applied so far.
type clock struct {
	since   process.Duration
	base    process.Duration
	pending process.Duration // the correction, at that moment
	drift   int              // parts per million
	rounds  int              // corrections so far

	corrected process.Duration // the time of the last correction
}

const million = 1_000_000

// SlewRate is how fast a clock applies a correction, in parts per million: it gains or
// loses a hundredth of the time until it shows the corrected time. So it never jumps,
// and never runs backwards.
const SlewRate = 10_000

// initClocks makes clocks only for runs in which an algorithm reads one or a fault
// disturbs one.
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

// at returns what the clock shows.
func (c *clock) at(now process.Duration) process.Duration {
	passed := now - c.since
	return c.base + passed + partsOf(passed, c.drift) + c.slewed(passed)
}

// slewed returns how much of the correction is applied after a time.
func (c *clock) slewed(passed process.Duration) process.Duration {
	done := partsOf(passed, SlewRate)
	return max(min(c.pending, done), -done)
}

// settled reports whether the whole correction is applied.
func (c *clock) settled(now process.Duration) bool { return c.slewed(now-c.since) == c.pending }

// partsOf returns the given parts per million of a length, without overflow.
func partsOf(length process.Duration, parts int) process.Duration {
	return length/million*process.Duration(parts) + length%million*process.Duration(parts)/million
}

// real returns the real duration of a length of the local clock. Timers run on the
// oscillator: corrections do not change them.
func (c *clock) real(length process.Duration) process.Duration {
	rate := process.Duration(million + c.drift)
	return max(1, length/rate*million+length%rate*million/rate)
}

// rebase makes the present the moment from which the clock counts.
func (c *clock) rebase(now process.Duration) {
	done := c.slewed(now - c.since)
	c.base, c.pending, c.since = c.at(now), c.pending-done, now
}

// reading is the clock value that a step gets. Algorithms that declare no clock get 0.
func (w *World) reading(p process.ID) process.Duration {
	if !w.cfg.Spec.Needs.Clock {
		return 0
	}
	return w.clocks[p].at(w.now)
}

// adjust corrects a clock by a length relative to its present reading. The rest of a
// correction in progress is dropped: the new correction was measured with the part of
// the old one that was already applied.
func (w *World) adjust(p process.ID, by process.Duration) {
	if w.clocks == nil {
		return
	}
	c := &w.clocks[p]
	c.rebase(w.now)
	c.pending = max(-longest, min(by, longest))
	c.rounds++
	c.corrected = w.now
}

// drift sets the rate of a clock from now on.
func (w *World) drift(p process.ID, drift int) {
	if w.clocks == nil {
		w.clocks = make([]clock, w.config.N)
	}
	c := &w.clocks[p]
	c.rebase(w.now)
	c.drift = drift
}

// jump sets a clock forward or back, together with the deadlines of its timers: a timer
// whose deadline is past then fires at once. Corrections never do that.
func (w *World) jump(p process.ID, by process.Duration) {
	w.record(trace.Jump, p, w.lengthText(by))
	shift := max(by, -by) // of real time
	if w.clocks != nil {
		c := &w.clocks[p]
		c.rebase(w.now)
		c.base += by
		shift = c.real(shift)
	}
	if by < 0 {
		shift = -shift
	}
	timers := w.scheduled(func(it *item) bool { return it.kind == itemTimer && it.proc == int32(p) })
	for i := range timers {
		it := &timers[i]
		key := timerKey(p, it.layer, process.Timer(it.arg))
		w.queue.cancel()
		w.pushTimer(key, max(w.now, process.Duration(it.at)-shift), order(classTimer, p), it)
	}
}

// lengthText returns a length in D, with its sign.
func (w *World) lengthText(by process.Duration) string {
	return fmt.Sprintf("%+g D", float64(by)/float64(w.config.D()))
}

// Clock returns what the local clock of a process shows, for onlookers.
func (w *World) Clock(p process.ID) process.Duration {
	if w.clocks == nil {
		return w.now
	}
	return w.clocks[p].at(w.now)
}

// Synchronized reports whether a clock was corrected at least once and has applied that
// correction.
func (w *World) Synchronized(p process.ID) bool {
	return w.clocks != nil && w.clocks[p].rounds > 0 && w.clocks[p].settled(w.now)
}
