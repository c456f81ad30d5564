package check

import "github.com/conclave-io/conclave/process"

// Causality is tracked by requests here: each process and each message knows how many
// requests of each process are in its past. For two requests that gives the same order
// as clocks that count all events, with fewer states.

func (s *stepper) wantsPast() bool {
	return s.cfg.checks(process.OrderHappenedBefore)
}

// noteAcquire is called when a client asks, before the step.
func (s *stepper) noteAcquire() {
	l := &s.next
	if len(l.past) > 0 {
		l.past[l.proc]++
		l.request = append(l.request[:0], l.past...)
	}
}

// join is called before the step that receives.
func (s *stepper) join(m *message) {
	l := &s.next
	for q := range l.past {
		l.past[q] = max(l.past[q], m.past[q])
	}
	if s.cfg.checks(process.FencesGrowCausally) {
		l.passed = max(l.passed, m.passed)
	}
}

// enterPast returns the largest fence in the past of a process that enters.
func (s *stepper) enterPast(fence process.Fence) process.Fence {
	if !s.cfg.checks(process.FencesGrowCausally) {
		return 0
	}
	if fence <= s.next.passed {
		s.flags |= booked
		s.extra.past = s.next.passed
	}
	return max(s.next.passed, fence)
}
