package check

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	flawed "github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/process"
)

var update = flag.Bool("update", false, "write the stories that are expected")

// mistakeOf is the search that finds the mistake of a variant.
func mistakeOf(v *flawed.Variant) Config {
	b := &v.Bounds
	cfg := Config{
		Spec: v.Spec, Process: process.Config{N: b.N, Options: b.Options}, Entries: b.Entries, Requesters: b.Clients, Duplicates: b.Duplicates,
		Timeouts: b.Timeouts, Crashes: b.Crashes, Restarts: b.Restarts, Cancels: b.Cancels, Workers: 1, NoReturn: 20_000,
	}
	if b.AnyTime {
		cfg.Timing = AnyTime
	}
	return cfg
}

// The story of each violation equals the one in testdata/stories.txt.
func TestStories(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{
		"lamport-no-tie-break", "ricart-agrawala-no-tie-break", "maekawa-slides", "maekawa-no-sanders", "suzuki-kasami-drops-while-inside",
		"raymond-forgets-others", "raymond-enters-at-head", "singhal-printed", "bully-waits-for-ever", "ring-list-relay-only",
		"token-ring-accepts-copies", "two-phase-commit-aborts-alone", "raft-votes-twice",
	} {
		r, err := Run(context.Background(), mistakeOf(flawed.Find(name)))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n%s\n", name, r.Broken, r.PointOfNoReturn())
		for _, told := range r.Story() {
			fmt.Fprintf(&b, "%d. %s\n", told.Step, told.Text)
		}
		b.WriteString("\n")
	}
	const path = "testdata/stories.txt"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the stories are\n%s\nthey must be as in %s; -update writes them", b.String(), path)
	}
}

// The point of no return agrees with the complete graph of states: it is the first state
// of the path from which no good end can be reached.
func TestNoReturnAgreesWithTheGraph(t *testing.T) {
	for _, name := range []string{"maekawa-slides", "maekawa-keeps-votes", "raymond-forgets-others", "suzuki-kasami-drops-while-inside", "singhal-printed", "naimi-trehel-stays-root", "ricart-agrawala-token-no-tick"} {
		given := mistakeOf(flawed.Find(name))
		cfg := given.withDefaults()
		s := newSearch(context.Background(), &cfg)
		s.run()
		r := s.result()
		if r.NoReturn < 0 || r.Broken == nil {
			t.Errorf("%s: %d", name, r.NoReturn)
			continue
		}
		g := &graph{search: s, w: s.workers[0], known: map[print]int32{}}
		if !g.build() {
			t.Fatal("the graph does not fit")
		}
		good := g.goodEnds()
		for at, state := range r.Path.states {
			i, known := g.known[g.w.printOfState(state)]
			if !known || good[i] != (at < r.NoReturn) {
				t.Errorf("%s: after step %d a good end can be reached: %v, the point of no return is step %d", name, at, good[i], r.NoReturn)
			}
		}
	}
}

// goodEnds says of each state whether a run from it can end well.
func (g *graph) goodEnds() []bool {
	good := make([]bool, len(g.nodes))
	for i := range g.nodes {
		wrong := g.w.expand(g.nodes[i].state, g.nodes[i].print)
		good[i] = wrong == nil && g.w.moves == 0
	}
	for changed := true; changed; {
		changed = false
		for i, n := range g.nodes {
			for _, a := range g.arcs[n.first:n.after] {
				if !good[i] && good[a.to] {
					good[i], changed = true, true
				}
			}
		}
	}
	return good
}
