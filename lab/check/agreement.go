package check

import (
	"fmt"
	"math"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// In a consensus each requester proposes Entries values, each as soon as the one before
// is answered. What was decided first in each place is a digit of one slot, and what a
// process has decided since it started is a count in its local state: that is all that
// judges of decisions remember.

// proposal returns the value that a process proposes after so many others. They all
// differ.
func (c *Config) proposal(p process.ID, before int) int64 {
	return int64(before*c.Process.N + int(p) + 1)
}

// validateProposals reports proposals that do not fit into the slot.
func (c *Config) validateProposals() error {
	n := c.Process.N * c.Entries
	places := n
	if property.Answers(c.Spec, 0, 1) {
		places = 2 // the second breaks the promise of a single decision
	}
	if c.family() == process.Agreement && math.Pow(float64(n+1), float64(places)) > math.MaxUint32 {
		return fmt.Errorf("check: %d proposals: the decisions do not fit into a state; give less entries or processes", n)
	}
	return nil
}

// propose lets the client of a process propose its next value.
func (s *stepper) propose() {
	l := &s.next
	value := s.cfg.proposal(l.proc, int(l.asked))
	if l.decisions == 0 || !property.Answers(s.spec, value, value+1) {
		l.phase = waiting // else it comes too late to be answered
	}
	l.asked++
	s.step(process.Event{Kind: process.Propose, Value: value})
}

// decided notes a decision.
func (s *stepper) decided(value int64) {
	l := &s.next
	l.decisions++
	if l.phase == waiting && property.Answers(s.spec, s.cfg.proposal(l.proc, int(l.asked)-1), value) {
		l.phase = idle
	}
	s.flags |= booked
	s.extra.decided = append(s.extra.decided, value)
}

// decisions returns how many decisions the step that is being taken has announced.
func (s *stepper) decisions() int {
	count := 0
	for i := range s.fx.Len() {
		if e := s.fx.At(i); e.Kind == process.EffectDecide && !e.Internal && s.decides() {
			count++
		}
	}
	return count
}

// decides reports whether decisions are outputs of the algorithm.
func (s *stepper) decides() bool { return s.cfg.family() == process.Agreement || s.cfg.transaction() }

// judgeDecisions judges what p has decided in a step, after some decisions since its
// start.
func (w *worker) judgeDecisions(next []uint32, f *print, p process.ID, before int, values []int64) *Violation {
	s, place := w.sceneOf(next), before
	for _, v := range values {
		place++
		for _, broken := range []*Violation{
			property.ValueValidity(s, p, v, w.proposed(next, v)),
			property.ValueAgreement(s, p, place, v, w.agree(next, f, place, v)),
			property.DecideOnce(s, p, place, v),
		} {
			if broken != nil && w.cfg.checks(broken.Property) {
				return broken
			}
		}
	}
	return nil
}

// proposed reports whether somebody has proposed a value.
func (w *worker) proposed(v []uint32, value int64) bool {
	n := int64(w.layout.n)
	if value < 1 || value > n*int64(w.cfg.Entries) {
		return false
	}
	return int64(w.view(v[(value-1)%n]).asked) > (value-1)/n
}

// agree returns what was decided first in a place. If that is this value it notes it.
func (w *worker) agree(next []uint32, f *print, place int, value int64) int64 {
	if w.layout.agreed < 0 {
		return value
	}
	base, weight := uint64(w.layout.n*w.cfg.Entries+1), uint64(1)
	for range place - 1 {
		weight *= base
	}
	held := uint64(next[w.layout.agreed])
	if first := held / weight % base; first != 0 {
		return int64(first)
	}
	if 0 < value && uint64(value) < base && weight*base <= math.MaxUint32 {
		w.set(next, f, w.layout.agreed, uint32(held+weight*uint64(value)))
	}
	return value
}

// inRound reports whether a timer must wait, because it ends a round that another
// process has not begun or not reached. Rounds are synchronous: nobody ends the next one
// before all have ended this one.
func (w *worker) inRound(v []uint32, p int) bool {
	rounds := w.view(v[p]).state.rounds
	for q := range w.layout.n {
		l := w.view(v[q])
		switch {
		case l.down || q == p:
		case l.asked == 0 && w.cfg.asks(process.ID(q)), len(l.state.timers) > 0 && l.state.rounds < rounds:
			return true
		}
	}
	return false
}

// synchronous reports whether the timers of an algorithm are those of rounds.
func (c *Config) synchronous() bool {
	return c.family() == process.Agreement && c.Spec.Needs.Synchrony && c.Spec.Layers == nil && c.Timing == Synchronous
}
