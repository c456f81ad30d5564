package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Declarations in a step are compared with the processes that were stuck in the state
// before it.

// deadlocks reports whether a property is about deadlocks.
func deadlocks(p process.Property) bool {
	return p == process.NoPhantom || p == process.DeadlockFound
}

func (c *Config) judgesDeadlocks() bool {
	return c.checks(process.NoPhantom) || c.checks(process.DeadlockFound)
}

// bookDeadlock notes a message that reports a deadlock.
func (s *stepper) bookDeadlock(m *process.Message) {
	if layer, t := property.Declares(s.spec); s.cfg.judgesDeadlocks() && m.Layer == layer && m.Type == t {
		s.flags |= booked
		s.extra.victims = append(s.extra.victims, m.Subject)
	}
}

// stuck returns the processes that can never continue from a state.
func (w *worker) stuck(v []uint32) property.Stuck {
	return property.StuckIn(w.spec.Waits(w.global.take(w, v)))
}

// judgeVictims judges the deadlocks that p has declared in a step.
func (w *worker) judgeVictims(next []uint32, f *print, p process.ID, victims []process.ID) *Violation {
	s, stuck := w.sceneOf(next), w.stuck(w.origin)
	for _, victim := range victims {
		if broken := property.Phantom(s, p, victim, stuck); broken != nil && w.cfg.checks(process.NoPhantom) {
			return broken
		}
		if slot := w.layout.declared; slot >= 0 {
			w.set(next, f, slot, next[slot]|1<<victim)
		}
	}
	return nil
}

// judgeDeadlocks watches that no deadlock is overlooked when no event is enabled.
func (w *worker) judgeDeadlocks(v []uint32) *Violation {
	if !w.cfg.checks(process.DeadlockFound) {
		return nil
	}
	declared := func(p process.ID) bool { return v[w.layout.declared]&(1<<p) != 0 }
	return property.DeadlockFound(w.sceneOf(v), w.stuck(v), declared)
}
