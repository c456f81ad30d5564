package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/check"
	"github.com/conclave-io/conclave/process"
)

// bounds is a configuration with what must come of it.
type bounds struct {
	name        string
	n, entries  int
	change      func(c *check.Config)
	broken      process.Property // 0: proved
	states      uint64           // 0: not asserted
	transitions uint64
	depth       int // of a violation: the length of the run to it
}

func (b *bounds) config(t *testing.T) check.Config {
	t.Helper()
	spec := algorithm.Find(b.name)
	if spec == nil {
		t.Fatalf("there is no algorithm %s", b.name)
	}
	c := check.Config{Spec: spec, Process: process.Config{N: b.n}, Entries: b.entries}
	if b.change != nil {
		b.change(&c)
	}
	return c
}

func unordered(c *check.Config) { c.Unordered = true }

var known = []bounds{
	{name: "central", n: 3, entries: 1, states: 130, transitions: 216, depth: 12},
	{name: "ricart-agrawala", n: 2, entries: 1, states: 39, transitions: 48, depth: 8},
	{name: "ricart-agrawala", n: 3, entries: 1, states: 5401, transitions: 13067, depth: 18},
	{name: "ricart-agrawala", n: 3, entries: 2, states: 383817, transitions: 999589, depth: 36},
	{name: "suzuki-kasami", n: 3, entries: 2, states: 16923, transitions: 52308, depth: 30},
	{name: "raymond", n: 3, entries: 2, states: 1866, transitions: 3442, depth: 24},
	{name: "lamport", n: 2, entries: 2, states: 2483, transitions: 3840, depth: 20},
	{name: "lamport", n: 2, entries: 1, change: unordered, broken: process.MutualExclusion},
	{name: "maekawa-slides", n: 3, entries: 1, broken: process.Progress},
	{name: "singhal-printed", n: 3, entries: 2, broken: process.Progress},
	{name: "singhal", n: 3, entries: 2},
	{name: "maekawa", n: 3, entries: 2},
	{name: "chang-roberts", n: 3, entries: 1, states: 195, transitions: 366, depth: 24},
}

func TestKnown(t *testing.T) {
	for _, b := range known {
		cfg := b.config(t)
		t.Run(b.name+" "+cfg.Bounds(), func(t *testing.T) {
			r, err := check.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %d states, %d transitions, depth %d, %.2f M/s, %v", r.Verdict, r.States, r.Transitions, r.Depth, r.Rate()/1e6, r.Broken)
			if broken := r.Broken != nil; broken != (b.broken != 0) || broken && r.Broken.Property != b.broken {
				t.Errorf("%s: %v", r.Verdict, r.Broken)
			}
			if b.states != 0 && (r.States != b.states || r.Transitions != b.transitions || r.Depth != b.depth) {
				t.Errorf("%d states, %d transitions, depth %d", r.States, r.Transitions, r.Depth)
			}
		})
	}
}
