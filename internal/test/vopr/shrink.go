package vopr

import (
	"slices"

	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

// Shrink searches for a smaller plan that breaks the same promise. It leaves out faults, many at a
// time and then one by one. It ends the run earlier, and shortens the remaining faults. It does at
// most the given number of runs.
func Shrink(plan faults.Plan, v *events.Violation, most int) (faults.Plan, *events.Violation) {
	s := shrinker{plan: plan, found: v, left: most}
	s.cutShort()
	for {
		before := len(s.plan.Faults)
		for size := max(before/2, 1); ; size /= 2 {
			s.leaveOut(size)
			if size <= 1 {
				break
			}
		}
		if len(s.plan.Faults) == before || s.left <= 0 {
			break
		}
	}
	s.shorten()
	s.cutShort()
	return s.plan, s.found
}

type shrinker struct {
	plan  faults.Plan
	found *events.Violation
	left  int
}

// try replaces the plan by another one if that breaks the same promise.
func (s *shrinker) try(p faults.Plan) bool {
	if s.left <= 0 {
		return false
	}
	s.left--
	v := Run(p, nil).Violation
	if v == nil || v.Rule != s.found.Rule {
		return false
	}
	s.plan, s.found = p, v
	return true
}

// leaveOut drops the given number of consecutive faults, wherever that is possible.
func (s *shrinker) leaveOut(size int) {
	for at := 0; at < len(s.plan.Faults); {
		p := s.plan
		p.Faults = slices.Delete(slices.Clone(p.Faults), at, min(at+size, len(p.Faults)))
		if !s.try(p) {
			at += size
		}
	}
}

// cutShort ends the run soon after the violation, and drops the later faults.
func (s *shrinker) cutShort() {
	at := s.found.At / ms
	p := s.plan
	p.Faults = slices.DeleteFunc(slices.Clone(p.Faults), func(f faults.Fault) bool { return f.At > at })
	if len(p.Faults) < len(s.plan.Faults) {
		s.try(p)
	}
	p = s.plan
	if p.Millis = max(1000, s.found.At/ms+1); p.Millis < s.plan.Millis {
		s.try(p)
	}
}

// shorten halves the length of each fault repeatedly, as long as the promise is still broken.
func (s *shrinker) shorten() {
	for i := range s.plan.Faults {
		for s.plan.Faults[i].For > 1 {
			p := s.plan
			p.Faults = slices.Clone(p.Faults)
			p.Faults[i].For /= 2
			if !s.try(p) {
				break
			}
		}
	}
}
