package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Delay is a distribution of durations. Make one with Constant, Uniform, Exponential or
// List. The meaning of the zero Delay depends on the field.
type Delay struct {
	kind   delayKind
	lo, hi process.Duration // exponential: the least and the mean
	list   []process.Duration
}

type delayKind uint8

const (
	unset delayKind = iota
	constant
	uniform
	exponential
	listed
)

// Constant is always d.
func Constant(d process.Duration) Delay { return Delay{kind: constant, lo: d, hi: d} }

// Uniform is anything from lo to hi with equal probability.
func Uniform(lo, hi process.Duration) Delay { return Delay{kind: uniform, lo: lo, hi: hi} }

// Exponential is at least least; the excess is exponentially distributed such that the
// mean is mean.
func Exponential(least, mean process.Duration) Delay {
	return Delay{kind: exponential, lo: least, hi: mean}
}

// List takes the given durations in turn, and starts again after the last. It is for
// runs in which the delay of each message is given.
func List(d ...process.Duration) Delay { return Delay{kind: listed, list: d} }

// IsZero reports whether the delay was not set.
func (d Delay) IsZero() bool { return d.kind == unset }

// Mean returns the mean of the distribution.
func (d Delay) Mean() process.Duration {
	switch d.kind {
	case uniform:
		return d.lo + (d.hi-d.lo)/2
	case listed:
		sum := process.Duration(0)
		for _, v := range d.list {
			sum += v
		}
		return sum / process.Duration(len(d.list))
	}
	return d.hi
}

// Max returns the longest delay, and false if there is none.
func (d Delay) Max() (longest process.Duration, bounded bool) {
	switch d.kind {
	case exponential:
		return 0, false
	case listed:
		return slices.Max(d.list), true
	}
	return d.hi, true
}

// String returns the distribution as text, in nanoseconds.
func (d Delay) String() string {
	switch d.kind {
	case constant:
		return fmt.Sprintf("constant %d", d.lo)
	case uniform:
		return fmt.Sprintf("uniform %d..%d", d.lo, d.hi)
	case exponential:
		return fmt.Sprintf("exponential mean %d, at least %d", d.hi, d.lo)
	case listed:
		return fmt.Sprintf("list %v", d.list)
	}
	return "default"
}

// longest is the longest delay that a run can add to its time without overflow.
const longest = process.Duration(1) << 55

func (d Delay) validate(what string) error {
	switch {
	case d.kind == listed && len(d.list) == 0:
		return fmt.Errorf("sim: %s: empty list; give at least one delay", what)
	case d.lo < 0 || d.hi < d.lo:
		return fmt.Errorf("sim: %s: %v: must be at least 0, with the larger delay last", what, d)
	case d.hi > longest:
		return fmt.Errorf("sim: %s: %v: must not exceed %d", what, d, longest)
	}
	for _, v := range d.list {
		if v < 0 || v > longest {
			return fmt.Errorf("sim: %s: delay: %d: must be 0 to %d", what, v, longest)
		}
	}
	return nil
}

// or returns d, or the given delay if d was not set.
func (d Delay) or(byDefault Delay) Delay {
	if d.IsZero() {
		return byDefault
	}
	return d
}

// sampler draws from a Delay.
type sampler struct {
	Delay
	turn int
}

func (s *sampler) draw(r *random) process.Duration {
	switch s.kind {
	case uniform:
		return s.lo + process.Duration(r.below(uint64(s.hi-s.lo)+1))
	case exponential:
		return s.lo + process.Duration(r.exponential(uint64(s.hi-s.lo)))
	case listed:
		v := s.list[s.turn]
		s.turn = (s.turn + 1) % len(s.list)
		return v
	}
	return s.lo
}

// drawAt is draw for the turn that the sampler was made with.
func (s *sampler) drawAt(r *random) process.Duration {
	if s.kind == listed {
		s.turn %= len(s.list)
	}
	return s.draw(r)
}

// TimerDelay says how long a timer of a process runs, in place of a random draw from
// the range that the machine names. Each time the timer is set, it takes the next value
// of the delay. This is for runs in which the order of events is given, such as those
// that the model checker has found.
type TimerDelay struct {
	Process process.ID
	Layer   uint8
	Timer   process.Timer
	Delay   Delay
}

func (c *Config) validateDecided() error {
	for i := range c.Timers {
		t := &c.Timers[i]
		if !c.exists(t.Process) {
			return fmt.Errorf("sim: timer %d: rank %d: must be 0 to %d", i+1, t.Process, c.Process.N-1)
		}
		l := c.Spec.Layer(t.Layer)
		if name := int(t.Timer.Name()); l == nil || name == 0 || name > len(l.Timers) {
			return fmt.Errorf("sim: timer %d is number %d of layer %d, which %s does not have", i+1, name, t.Layer, c.Spec.Name)
		}
		if err := t.Delay.validate(fmt.Sprintf("timer %d", i+1)); err != nil {
			return err
		}
	}
	for i, choice := range c.Choices {
		if choice < 0 {
			return fmt.Errorf("sim: choice %d: %d: must not be negative", i+1, choice)
		}
	}
	return nil
}

// decide applies what the configuration decides.
func (w *World) decide() {
	w.choose = w.pick
	if w.cfg.Journal != nil {
		w.choose = func(n int) int {
			w.picked = append(w.picked, w.pick(n))
			return w.picked[len(w.picked)-1]
		}
	}
	if len(w.cfg.Timers) == 0 {
		return
	}
	w.decided = make(map[uint64]*sampler, len(w.cfg.Timers))
	for _, t := range w.cfg.Timers {
		w.decided[timerKey(t.Process, t.Layer, t.Timer)] = &sampler{Delay: t.Delay}
	}
}

// pick returns the next choice of a machine or a traitor: the given one, or otherwise a
// random one.
func (w *World) pick(n int) int {
	if w.chosen < len(w.cfg.Choices) {
		w.chosen++
		return min(w.cfg.Choices[w.chosen-1], n-1)
	}
	w.key(&w.choiceDice, streamChoices, uint64(w.fx.Self()+1))
	return int(w.choiceDice.below(uint64(n)))
}

// timeout returns the duration of a timer that is set now.
func (w *World) timeout(key uint64, e *process.Effect) process.Duration {
	w.key(&w.timerDice, streamTimers, key)
	if d := w.decided[key]; d != nil {
		return max(1, d.draw(&w.timerDice))
	}
	return e.Lo + process.Duration(w.timerDice.below(uint64(e.Hi-e.Lo)+1))
}
