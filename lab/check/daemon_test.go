package check_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/internal/gen/splice"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

var updateStabilization = flag.Bool("update-stabilization", false, "write the tables of docs/stabilization.md")

func stabilize(m dijkstra.Machines, d Daemon) Stabilization {
	return Reading{N: m.N, States: m.States, Moves: m.Moves}.Stabilize(d)
}

// least returns the least k with which a ring stabilizes, and the result. It checks that
// every larger k up to n+1 suffices too.
func least(t *testing.T, n int, d Daemon) (int, Stabilization) {
	found, first := 0, Stabilization{}
	for k := 2; k <= n+1; k++ {
		r := stabilize(dijkstra.Ring(n, k), d)
		switch {
		case r.Broken == "" && found == 0:
			found, first = k, r
		case r.Broken != "" && found > 0:
			t.Errorf("n=%d: k=%d is enough, k=%d is not: %s", n, found, k, r.Broken)
		case r.Broken != "" && len(r.Loop) == 0:
			t.Errorf("n=%d, k=%d: %s", n, k, r.Broken)
		}
	}
	return found, first
}

// TestStabilization: the ring needs n-1 values if one machine moves at a time, and n if any
// do; the machines with three and four states converge under both. The page has the figures.
func TestStabilization(t *testing.T) {
	var table strings.Builder
	table.WriteString("| machines | n | states | legitimate | one at a time: most moves | any set: most steps |\n|---|---|---|---|---|---|\n")
	for n := 2; n <= 5; n++ {
		one, central := least(t, n, Central)
		any, distributed := least(t, n, Distributed)
		if one != max(2, n-1) || any != n {
			t.Errorf("n=%d: the least k is %d for one at a time and %d for any set, want n-1 and n", n, one, any)
		}
		if one < any {
			fmt.Fprintf(&table, "| K-state, K = %d | %d | %d | %d | %d | - |\n", one, n, central.Total, central.Legitimate, central.Worst)
		}
		atOnce := stabilize(dijkstra.Ring(n, n), Central)
		fmt.Fprintf(&table, "| K-state, K = %d | %d | %d | %d | %d | %d |\n", any, n, distributed.Total, distributed.Legitimate, atOnce.Worst, distributed.Worst)
	}
	for _, machines := range []func(n int) dijkstra.Machines{dijkstra.FourStates, dijkstra.ThreeStates} {
		for n := 3; n <= 6; n++ {
			m := machines(n)
			central, distributed := stabilize(m, Central), stabilize(m, Distributed)
			if central.Broken+distributed.Broken != "" {
				t.Errorf("%s, n=%d: %s%s", m.Name, n, central.Broken, distributed.Broken)
			}
			fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d |\n", m.Name, n, central.Total, central.Legitimate, central.Worst, distributed.Worst)
		}
	}
	writeTable(t, "reading", table.String())
}

// corrupt begins in every state, with the given number of values, and of messages on each
// link.
func corrupt(values, inFlight int) func(c *check.Config) {
	return func(c *check.Config) {
		c.Corrupt, c.InFlight = true, inFlight
		c.Process.Options = []process.OptionValue{{Name: "values", Value: fmt.Sprint(values)}}
	}
}

// TestMessagesStabilize finds how many values are enough where machines send messages.
func TestMessagesStabilize(t *testing.T) {
	var table strings.Builder
	table.WriteString("| n | messages on each link | values | states | converges |\n|---|---|---|---|---|\n")
	for _, row := range []struct {
		n, inFlight, values int
		enough              bool
	}{
		{2, 0, 2, true}, {2, 1, 2, true}, {2, 2, 3, false}, {2, 2, 4, true},
		{3, 0, 2, true}, {3, 1, 2, false}, {3, 1, 3, true}, {4, 0, 2, true}, {4, 1, 2, false}, {5, 0, 2, true},
	} {
		b := bounds{name: "dijkstra", n: row.n, change: corrupt(row.values, row.inFlight)}
		r, err := check.Run(t.Context(), b.config(t))
		if err != nil {
			t.Fatal(err)
		}
		if enough := r.Verdict == check.Proved; enough != row.enough || !enough && r.Broken.Property != process.Convergence {
			t.Errorf("%s, %d values: %s %v", r.Config.Bounds(), row.values, r.Verdict, r.Broken)
		}
		verdict := "yes"
		if r.Broken != nil {
			verdict = "no: " + r.Broken.Text
			replayLoop(t, r)
		}
		fmt.Fprintf(&table, "| %d | %d | %d | %d | %s |\n", row.n, row.inFlight, row.values, r.States, verdict)
	}
	writeTable(t, "sending", table.String())
}

// replayLoop runs the loop that was found in the simulator.
func replayLoop(t *testing.T, r *check.Result) {
	t.Helper()
	sc, err := r.Replay()
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Scenario())
	}
	if o, err := sc.Run(); err != nil || !o.Met() {
		t.Errorf("%v, %v\n%s", err, o, r.Scenario())
	}
}

// writeTable compares a table with that of the page, or writes it.
func writeTable(t *testing.T, block, table string) {
	t.Helper()
	same, err := splice.File("../../docs/stabilization.md", block, table, *updateStabilization)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Errorf("a table of docs/stabilization.md is not what the checker finds; run go test ./lab/check -run Stabiliz -update-stabilization\n%s", table)
	}
}

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
