package check

import "github.com/conclave-io/conclave/process"

// rescue looks for runs that keep the property that a path violates. A state is lost if
// no such run continues from it. It is saved by a state in which no event is enabled
// and nothing is wrong. Unless the violation is about how runs end, it is also saved by
// a loop.
type rescue struct {
	*worker
	atEnd bool           // the violation is about how runs end
	lost  map[print]bool // by searched state; false: being searched
	left  int            // number of states that may still be searched
	open  bool           // something that might save a state was left out
}

// noReturn returns the first step of a path after which every run violates a property:
// 0 if every run does from the start. It returns -1 if that is unknown: because of the
// limit on states, or because there are loops in which a process waits.
func (s *search) noReturn(p *Path, f *finding, limit int) int {
	if s.loop != nil || limit == 0 {
		return -1
	}
	w := s.workers[0]
	w.normal, w.believed = nil, nil // see pick
	r := &rescue{worker: w, atEnd: f.action.kind == 0 && f.broken.Property != process.StateInvariant, lost: map[print]bool{}, left: limit}
	for at := len(p.states) - 1; at >= 0; at-- {
		if f.action.kind == 0 && at == len(p.states)-1 {
			r.lost[w.printOfState(p.states[at])] = true // it is wrong itself
			continue
		}
		if r.saved(p.states[at]) {
			return at + 1
		}
		if r.open || r.left <= 0 {
			return -1
		}
	}
	return 0
}

// ahead is a state whose successors are searched.
type ahead struct {
	print print
	next  [][]uint32
}

// saved reports whether a run that keeps the properties continues from a state.
func (r *rescue) saved(state []uint32) bool {
	var stack []ahead
	for {
		if f := r.printOfState(state); state != nil {
			searched, known := r.lost[f]
			switch {
			case known && !searched:
				if !r.atEnd {
					return true
				}
				r.open = true
			case !known:
				next, good := r.enter(state, f)
				if good {
					return true
				}
				stack = append(stack, ahead{f, next})
			}
		}
		if len(stack) == 0 || r.left <= 0 {
			return false
		}
		top := &stack[len(stack)-1]
		if last := len(top.next) - 1; last >= 0 {
			state, top.next = top.next[last], top.next[:last]
			continue
		}
		r.lost[top.print] = true
		stack, state = stack[:len(stack)-1], nil
	}
}

// enter returns the successors of a state that violate nothing, and whether the state
// is a good end.
func (r *rescue) enter(state []uint32, f print) (next [][]uint32, good bool) {
	r.lost[f] = false
	r.left--
	if r.cfg.checks(process.StateInvariant) && r.global.judge(r.worker, state) != nil {
		return nil, false
	}
	if r.expand(state, f) != nil {
		return nil, false
	}
	if r.moves == 0 {
		if !r.goesOn(state) {
			return nil, true
		}
		r.open = true
	}
	for i := range r.found {
		if r.found[i].broken == nil {
			next = append(next, append([]uint32{}, r.successor(i)...))
		}
	}
	return next, false
}
