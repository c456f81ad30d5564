package check_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/internal/splice"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

var updateStabilization = flag.Bool("update-stabilization", false, "write the tables of docs/stabilization.md")

func stabilize(m dijkstra.Machines, d check.Daemon) check.Stabilization {
	return check.Reading{N: m.N, States: m.States, Moves: m.Moves}.Stabilize(d)
}

// least returns the least k with which a ring stabilizes, and the result. It checks that
// every larger k up to n+1 suffices too.
func least(t *testing.T, n int, d check.Daemon) (int, check.Stabilization) {
	found, first := 0, check.Stabilization{}
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
		one, central := least(t, n, check.Central)
		any, distributed := least(t, n, check.Distributed)
		if one != max(2, n-1) || any != n {
			t.Errorf("n=%d: the least k is %d for one at a time and %d for any set, want n-1 and n", n, one, any)
		}
		if one < any {
			fmt.Fprintf(&table, "| K-state, K = %d | %d | %d | %d | %d | - |\n", one, n, central.Total, central.Legitimate, central.Worst)
		}
		atOnce := stabilize(dijkstra.Ring(n, n), check.Central)
		fmt.Fprintf(&table, "| K-state, K = %d | %d | %d | %d | %d | %d |\n", any, n, distributed.Total, distributed.Legitimate, atOnce.Worst, distributed.Worst)
	}
	for _, machines := range []func(n int) dijkstra.Machines{dijkstra.FourStates, dijkstra.ThreeStates} {
		for n := 3; n <= 6; n++ {
			m := machines(n)
			central, distributed := stabilize(m, check.Central), stabilize(m, check.Distributed)
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
