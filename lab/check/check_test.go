package check_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// bounds is a configuration with its expected result.
type bounds struct {
	name        string
	n, entries  int
	change      func(c *check.Config)
	broken      process.Property // "": proved
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

// assertion stands for a broken assertion, which is no property.
const assertion process.Property = "assertion"

// breaks reports whether what a search found is what it should find, "" for nothing.
func breaks(r *check.Result, want process.Property) bool {
	switch {
	case r.Broken == nil:
		return want == ""
	case r.Broken.Property == "":
		return want == assertion
	}
	return r.Broken.Property == want
}

func duplicated(c *check.Config) { c.Duplicates = 1 }

func crashing(c *check.Config) { c.Crashes = 1 }

func cancelling(c *check.Config) { c.Cancels = 1 }

func unordered(c *check.Config) { c.Unordered = true }

// quorums are voting sets that the given processes use.
func quorums(sets func(n int) [][]process.ID, requesters ...process.ID) func(c *check.Config) {
	return func(c *check.Config) { c.Process.Topology.Quorums, c.Requesters = sets(c.Process.N), requesters }
}

// leases lets two processes ask three servers, or the only one. Servers may crash and
// restart.
func leases(crashes, restarts, timeouts int) func(c *check.Config) {
	return func(c *check.Config) {
		c.Crashes, c.Restarts, c.Timeouts, c.Requesters = crashes, restarts, timeouts, []process.ID{0, 1}
		if c.Spec.Name == "redlock" {
			c.Process.Options = []process.OptionValue{{Name: "servers", Value: "3"}}
		}
	}
}

// stale checks that fences grow along happened-before, although leases end while their
// holders are inside.
func stale(c *check.Config) {
	c.Timeouts, c.Timing, c.Properties = 3, check.AnyTime, []process.Property{process.FencesGrowCausally}
	c.Crashes, c.Restarts, c.Requesters = 1, 1, []process.ID{1, 2}
}

// tooSoon lets the lease of one server end before the deadline of its holder, and no other
// timer run out.
func tooSoon(c *check.Config) {
	leases(0, 0, 1)(c)
	c.Timing = check.AnyTime
}

// rootDown replaces the root of a tree of three, which is down, by its two leaves.
func rootDown(c *check.Config) {
	c.Process.Topology.Quorums, c.Requesters = process.TreeQuorums(c.Process.N, 0), []process.ID{1, 2}
}

var known = []bounds{
	{name: "central", n: 3, entries: 1, states: 130, transitions: 216, depth: 12},
	{name: "ricart-agrawala", n: 2, entries: 1, states: 39, transitions: 48, depth: 8},
	{name: "ricart-agrawala", n: 3, entries: 1, states: 5401, transitions: 13067, depth: 18},
	{name: "ricart-agrawala", n: 3, entries: 2, states: 383817, transitions: 999589, depth: 36},
	{name: "suzuki-kasami", n: 3, entries: 2, states: 16923, transitions: 52308, depth: 30},
	{name: "raymond", n: 3, entries: 2, states: 1866, transitions: 3442, depth: 24},
	{name: "naimi-trehel", n: 3, entries: 2, states: 2314, transitions: 4116, depth: 26},
	{name: "naimi-trehel", n: 4, entries: 1, states: 1386, transitions: 2980, depth: 18},
	{name: "naimi-trehel", n: 4, entries: 1, change: unordered, states: 1476, transitions: 3352, depth: 18},
	{name: "naimi-trehel", n: 3, entries: 1, change: duplicated, broken: assertion},
	{name: "lamport", n: 2, entries: 2, states: 2483, transitions: 3840, depth: 20},
	{name: "lamport", n: 2, entries: 1, change: unordered, broken: process.MutualExclusion},
	{name: "maekawa-slides", n: 3, entries: 1, broken: process.Progress},
	{name: "singhal-printed", n: 3, entries: 2, broken: process.Progress},
	{name: "singhal", n: 3, entries: 2},
	{name: "maekawa", n: 3, entries: 2},
	{name: "maekawa", n: 3, entries: 1, change: quorums(process.Plane)},
	{name: "maekawa", n: 4, entries: 1, change: quorums(process.Grid, 0, 3)},
	{name: "maekawa", n: 7, entries: 1, change: quorums(process.Plane, 0, 6)},
	{name: "maekawa", n: 7, entries: 1, change: quorums(process.Grid, 0, 6)},
	{name: "maekawa", n: 7, entries: 1, change: quorums(func(n int) [][]process.ID { return process.TreeQuorums(n) }, 3, 6)},
	{name: "maekawa", n: 3, entries: 2, change: rootDown, states: 301, transitions: 435, depth: 22},
	{name: "lease", n: 3, entries: 1, change: func(c *check.Config) { c.Timeouts = 3 }, states: 2556, transitions: 3979, depth: 24},
	{name: "lease", n: 3, entries: 1, change: leases(1, 1, 3)},
	{name: "lease", n: 3, entries: 1, change: func(c *check.Config) { c.Timeouts, c.Timing = 2, check.AnyTime }, broken: process.MutualExclusion},
	{name: "lease", n: 3, entries: 1, change: stale},
	{name: "redlock", n: 3, entries: 1, change: leases(0, 0, 2)},
	{name: "redlock", n: 3, entries: 1, change: leases(1, 1, 2)},
	{name: "redlock", n: 3, entries: 1, change: tooSoon, broken: process.MutualExclusion},
	{name: "dijkstra", n: 3, entries: 1, states: 2034, transitions: 3537, depth: 43},
	{name: "dijkstra", n: 3, entries: 1, change: func(c *check.Config) { c.Drops = 1 }},
	{name: "dijkstra", n: 2, entries: 1, change: unordered, broken: process.StateInvariant},
	{name: "bully", n: 3, entries: 1, change: func(c *check.Config) { c.Timing = check.AnyTime }, broken: process.LeaderValidity},
	{name: "bully", n: 3, entries: 1, change: func(c *check.Config) { c.Crashes, c.Timeouts = 1, 3 }},
	{name: "lamport", n: 3, entries: 1, change: func(c *check.Config) { c.Drops = 1 }, broken: process.MutualExclusion},
	{name: "suzuki-kasami", n: 3, entries: 1, change: func(c *check.Config) { c.Drops = 1 }, broken: process.Progress},
	{name: "suzuki-kasami", n: 3, entries: 1, change: crashing, broken: process.Progress},
	{name: "ricart-agrawala", n: 3, entries: 1, change: crashing},
	{name: "ricart-agrawala", n: 3, entries: 1, change: func(c *check.Config) { c.Crashes, c.Restarts = 1, 1 }, broken: process.OrderHappenedBefore},
	{name: "k-ricart-agrawala", n: 3, entries: 2, change: duplicated, broken: assertion},
	{name: "maekawa", n: 3, entries: 1, change: duplicated, broken: process.MutualExclusion},
	{name: "raymond", n: 3, entries: 1, change: duplicated, broken: assertion},
	{name: "central", n: 3, entries: 1, change: crashing},
	{name: "chang-roberts", n: 3, entries: 1, states: 195, transitions: 366, depth: 24},
}

func TestKnown(t *testing.T) {
	for _, b := range known {
		cfg := b.config(t)
		t.Run(b.name+" "+cfg.Bounds(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r, err := check.Run(ctx, cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s, %d states, %d transitions, depth %d, %.2f M/s, %v", r.Verdict, r.States, r.Transitions, r.Depth, r.Rate()/1e6, r.Broken)
			if !breaks(r, b.broken) {
				t.Errorf("%s: %v", r.Verdict, r.Broken)
			}
			if r.Broken != nil {
				replayed(t, r)
			}
			if b.states != 0 && (r.States != b.states || r.Transitions != b.transitions || r.Depth != b.depth) {
				t.Errorf("%d states, %d transitions, depth %d", r.States, r.Transitions, r.Depth)
			}
		})
	}
}

// replayed runs what was found in the simulator, which must find the same.
func replayed(t *testing.T, r *check.Result) {
	t.Helper()
	sc, err := r.Replay()
	if err != nil {
		t.Fatalf("%v\n%s", err, r.Scenario())
	}
	o, err := sc.Run()
	if err != nil {
		t.Fatal(err)
	}
	v := o.Result.Violations
	if len(v) == 0 || v[0].Property != r.Broken.Property || v[0].Process != r.Broken.Process || !strings.HasPrefix(v[0].String(), r.Broken.String()+" (at ") {
		t.Errorf("the simulator finds %v, the checker %v\n%s", v, r.Broken, r.Scenario())
	}
}

// TestInterrupted: a search that was interrupted does not report that its time is over.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := check.Run(ctx, check.Config{Spec: algorithm.Find("lamport"), Process: process.Config{N: 3}})
	if err != nil || r.Verdict != check.Bounded || r.Stopped != "interruption" {
		t.Errorf("%v, %v", r, err)
	}
}
