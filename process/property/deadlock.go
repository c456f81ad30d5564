package property

import "github.com/conclave-io/conclave/process"

// Stuck returns the processes that can never continue.
type Stuck struct {
	waits []process.Wait
	set   process.Set
}

// StuckIn returns those of a state. In an AND wait, a process is stuck if one process
// that it waits for is stuck; in an OR wait, if all of them are. So the result is the
// largest set of waiting processes that agrees with this.
func StuckIn(waits []process.Wait) Stuck {
	s := Stuck{waits, process.NewSet(len(waits))}
	for p, w := range waits {
		if len(w.For) > 0 {
			s.set.Add(process.ID(p))
		}
	}
	for again := true; again; {
		again = false
		for p := range s.set.All() {
			if !s.holds(p) {
				s.set.Remove(p)
				again = true
			}
		}
	}
	return s
}

// holds reports whether the processes that p waits for keep it from continuing.
func (s *Stuck) holds(p process.ID) bool {
	w := s.waits[p]
	for _, q := range w.For {
		if s.set.Has(q) != w.Any {
			return !w.Any
		}
	}
	return w.Any
}

// deadlocked reports whether p is part of a deadlock: it is stuck, and in an AND wait
// on a cycle.
func (s *Stuck) deadlocked(p process.ID) bool {
	return s.set.Has(p) && (s.waits[p].Any || s.reaches(p, func(q process.ID) bool { return q == p }))
}

// reaches reports whether p waits, directly or not, for a stuck process that passes a
// test.
func (s *Stuck) reaches(p process.ID, test func(q process.ID) bool) bool {
	seen := process.NewSet(len(s.waits))
	next := []process.ID{p}
	for len(next) > 0 {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		for _, q := range s.waits[last].For {
			if !s.set.Has(q) || seen.Has(q) {
				continue
			}
			if test(q) {
				return true
			}
			seen.Add(q)
			next = append(next, q)
		}
	}
	return false
}

// Declares returns the type of the message of the top layer by which a detector reports
// a deadlock, or 0. The subject of the message is the process that is to give up, or
// does.
func Declares(spec *process.Spec) (layer uint8, t process.Type) { return named(spec, "DEADLOCK") }

// Phantom judges that p declares a deadlock of a victim, by who was stuck before that.
func Phantom(s Scene, p, victim process.ID, stuck Stuck) *Violation {
	if len(stuck.waits) > 0 && stuck.deadlocked(victim) {
		return nil
	}
	c := s.Config()
	return broken(process.NoPhantom, p, "%s declared a deadlock of %s, which is in none", c.Text(p), c.Text(victim))
}

// DeadlockFound judges a state in which no event is enabled: everyone who is stuck was
// declared a victim since its last entry, or waits for one.
func DeadlockFound(s Scene, stuck Stuck, declared func(p process.ID) bool) *Violation {
	forgotten := list(s, func(p process.ID) bool {
		return stuck.set.Has(p) && !declared(p) && !stuck.reaches(p, declared)
	})
	if forgotten == "" {
		return nil
	}
	return broken(process.DeadlockFound, process.None, "%s can never go on, and no deadlock was declared", forgotten)
}
