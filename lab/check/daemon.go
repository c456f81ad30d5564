package check

import (
	"fmt"
	"slices"
)

// Reading is a system of processes that read each other's variables, as in Dijkstra's
// paper. Nothing is in flight between them, and there are no events: a daemon chooses
// which privileged process moves. This is not a Spec, whose machines receive messages.
// So it is a separate search of all states, by the given rules.
type Reading struct {
	N      int
	States func(i int) int            // number of states of process i
	Moves  func(v []int, i int) []int // the states that it may go to, one for each privilege
}

// Daemon says which processes move at a time.
type Daemon uint8

// The daemons.
const (
	Central     Daemon = iota // one process
	Distributed               // any of the privileged, all reading the previous state
)

// Stabilization is the result of a search. A state is legitimate if it has exactly one
// privilege.
type Stabilization struct {
	Total      int // states
	Legitimate int // of these
	// Worst is the largest number of steps to a legitimate state.
	Worst int
	// Broken says what is wrong, or is empty: a state without a privilege, a
	// legitimate one that is left, or a loop of others. Loop is that loop.
	Broken string
	Loop   [][]int
}

// Stabilize searches all states. The daemon need not be fair.
func (r Reading) Stabilize(d Daemon) Stabilization {
	s := &stabilizer{Reading: r, daemon: d, steps: map[int]int{}}
	total := 1
	for i := range r.N {
		total *= r.States(i)
	}
	s.Total = total
	for code := 0; code < total && s.Broken == ""; code++ {
		s.Worst = max(s.Worst, s.visit(code))
	}
	return s.Stabilization
}

type stabilizer struct {
	Reading
	Stabilization
	daemon Daemon
	steps  map[int]int // of finished states: the most steps to a legitimate one; otherwise open
	stack  []int
}

// openState marks the states on the stack.
const openState = -1

// visit returns the largest number of steps from a state to a legitimate one.
func (s *stabilizer) visit(code int) int {
	if steps, seen := s.steps[code]; seen {
		if steps == openState {
			s.Broken = "a loop that is not legitimate"
			for _, c := range s.stack[slices.Index(s.stack, code):] {
				s.Loop = append(s.Loop, s.decode(c))
			}
		}
		return steps
	}
	v := s.decode(code)
	privileges := s.privileges(v)
	if privileges == 0 {
		s.Broken = fmt.Sprintf("no privilege in %v", v)
		return 0
	}
	s.steps[code] = openState
	s.stack = append(s.stack, code)
	steps := 0
	for _, next := range s.successors(v) {
		if privileges == 1 {
			if s.privileges(next) != 1 {
				s.Broken = fmt.Sprintf("%v is legitimate, %v is not", v, next)
			}
		} else if s.Broken == "" {
			steps = max(steps, 1+s.visit(s.encode(next)))
		}
	}
	s.stack = s.stack[:len(s.stack)-1]
	if privileges == 1 {
		s.Legitimate++
	}
	s.steps[code] = steps
	return steps
}

func (s *stabilizer) privileges(v []int) int {
	count := 0
	for i := range v {
		count += len(s.Moves(v, i))
	}
	return count
}

// successors returns the states after a step of the daemon.
func (s *stabilizer) successors(v []int) [][]int {
	all := [][]int{slices.Clone(v)}
	for i := range v {
		var more [][]int
		for _, to := range s.Moves(v, i) {
			for _, base := range all {
				if s.daemon == Central && !slices.Equal(base, v) {
					continue
				}
				next := slices.Clone(base)
				next[i] = to
				more = append(more, next)
			}
		}
		all = append(all, more...)
	}
	return all[1:]
}

func (s *stabilizer) encode(v []int) int {
	code := 0
	for i := range v {
		code = code*s.Reading.States(i) + v[i]
	}
	return code
}

func (s *stabilizer) decode(code int) []int {
	v := make([]int, s.N)
	for i := s.N - 1; i >= 0; i-- {
		v[i] = code % s.Reading.States(i)
		code /= s.Reading.States(i)
	}
	return v
}
