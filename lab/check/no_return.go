package check

import "github.com/conclave-io/conclave/process"

// rescue looks for runs that keep what a path breaks. A state is lost if none goes on from
// it. It is saved by a state in which nothing is left to happen and nothing is wrong, and,
// unless what was found is about how runs end, by a run that goes round.
type rescue struct {
	*worker
	atEnd bool           // what was found is about how runs end
	lost  map[print]bool // by states that were searched; false: being searched
	left  int            // states that may be searched
	open  bool           // something of which it is not known whether it saves was left out
}

// noReturn returns the first step of a path after which every run breaks a promise: 0 if
// every run does from the start on. It returns -1 if that is not known: within so many
// states, or because runs go round in which somebody waits.
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

// saved reports whether a run that keeps the promises goes on from a state.
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

// enter returns the successors of a state that break nothing, and whether the state is a
// good end.
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
