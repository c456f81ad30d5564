package check_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// hardship is a search that judges no property. Many rules are for runs in which promises
// are broken, and a search that judges ends with the first violation.
type hardship struct {
	name   string
	change func(c *check.Config)
	of     string // the algorithm that needs it; empty: any
	mode   string // the mode that needs it; empty: each
	states uint64 // 0: 30,000
}

// hardships are the searches that together apply every rule. Those that apply the most
// come first.
var hardships = []hardship{
	{name: "alone", of: "token-ring", change: func(c *check.Config) { c.Process.N = 1 }},
	{name: "two, of which one comes back", of: "raft-mutex", states: 400_000, change: func(c *check.Config) {
		c.Process.N, c.Crashes, c.Restarts, c.Timeouts = 2, 1, 1, 4
	}},
	{name: "two that wait for each other", of: "diffusion", change: func(c *check.Config) {
		c.Process.N, c.Timing, c.Timeouts = 2, check.AnyTime, 4
	}},
	{name: "two takeovers at once", of: "token-ring", states: 300_000, change: returning},
	{name: "two takeovers at once", of: "central", mode: "silent", states: 1_500_000, change: returning},
	{name: "two inside, and a takeover", of: "central", states: 600_000, change: func(c *check.Config) {
		c.Suspicions, c.Timing, c.Timeouts = 1, check.AnyTime, 2
	}},
	{name: "everything goes wrong", change: func(c *check.Config) {
		c.Crashes, c.Restarts, c.Drops, c.Entries, c.Unordered = 1, 1, 1, 2, true
		c.Timing, c.Timeouts, c.Order = check.AnyTime, 5, check.DepthFirst
	}},
	{name: "a duplicate and a crash", states: 10_000, change: func(c *check.Config) {
		c.Crashes, c.Duplicates = 1, 1
		c.Timing, c.Timeouts, c.Order = check.AnyTime, 5, check.DepthFirst
	}},
	{name: "crash and restart", change: func(c *check.Config) { c.Crashes, c.Restarts, c.Timeouts = 1, 1, 3 }},
	{name: "crash", change: func(c *check.Config) { c.Crashes, c.Timeouts = 1, 3 }},
	{name: "withdrawal", change: func(c *check.Config) { c.Cancels, c.Unordered, c.Timeouts = 1, true, 2 }},
	{name: "a detector that helps", change: func(c *check.Config) {
		c.Detector, c.Crashes, c.Restarts, c.Timeouts = process.ReliableDetector, 1, 1, 3
	}},
	{name: "a detector that is not sure", change: func(c *check.Config) {
		c.Detector, c.Crashes, c.Restarts, c.Timeouts = process.UnreliableDetector, 1, 1, 3
	}},
	{name: "options", change: func(c *check.Config) {
		c.Timing, c.Timeouts = check.AnyTime, 2
		for _, o := range rareOptions {
			if slices.ContainsFunc(c.Spec.AllOptions(), func(has process.Option) bool { return has.Name == o.Name }) {
				c.Process.Options = append(c.Process.Options, o)
			}
		}
	}},
	{name: "hasty timers", change: func(c *check.Config) { c.Timing, c.Timeouts = check.AnyTime, 3 }},
	{name: "loss", change: func(c *check.Config) { c.Drops, c.Timeouts = 1, 3 }},
}

// scripted has rules that a search cannot apply, with a script for each: a detector must
// withdraw a wrong suspicion, or an election must have two winners.
var scripted = map[string]map[string]string{
	"paxos":          {"P8": "../../algorithm/agreement/paxos/testdata/paxos/refused"},
	"token-ring":     {"T4": "../../algorithm/mutex/tokenring/testdata/wrong_detector"},
	"wait-for-graph": {"maintainer W6a": "../../algorithm/stack/deadlocks/testdata/wait-for-graph/two_maintainers"},
	"edge-chasing": { // nobody lends anything there
		"probes D3b": "../../algorithm/stack/deadlocks/testdata/maekawa-edge-chasing/lent_vote",
		"probes D3c": "../../algorithm/stack/deadlocks/testdata/maekawa-edge-chasing/through_voters",
	},
}

// returning has a takeover by the second best process while the best is down, and a
// takeover by the best after its restart.
func returning(c *check.Config) {
	c.Crashes, c.Restarts, c.Requesters = 1, 1, []process.ID{1}
	c.Timing, c.Timeouts = check.AnyTime, 2
}

// rareOptions lead to rules that are not applied without them.
var rareOptions = []process.OptionValue{
	{Name: "announce", Value: "all"}, {Name: "merge", Value: "yes"}, {Name: "window", Value: "1"}, {Name: "retry", Value: "1"},
}

// TestEveryRule: each rule of each algorithm that can be checked is applied in some
// schedule. No proof covers a rule that no schedule applies. Layers of a stack that are
// algorithms themselves need not apply again what they have applied alone.
func TestEveryRule(t *testing.T) {
	applied := map[string]bool{} // by algorithms that stand alone
	for _, spec := range algorithm.All {
		if c := (check.Config{Spec: spec, Process: process.Config{N: 3}}); c.Validate() != nil || len(check.Claimed(spec, &c.Process)) == 0 {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			left := everyRule(spec)
			for rule, script := range scripted[spec.Name] {
				text, err := os.ReadFile(script)
				if err != nil || !regexp.MustCompile(`\[(\w+ )*`+rule[strings.LastIndex(rule, " ")+1:]+`( \w+)*\]`).Match(text) {
					t.Errorf("%s does not apply %s: %v", script, rule, err)
				}
				delete(left, rule)
			}
			maps.DeleteFunc(left, func(rule string, _ bool) bool { return applied[rule] })
			for _, h := range hardships {
				for _, mode := range spec.Modes() {
					h.apply(t, spec, mode, left)
				}
			}
			if len(left) > 0 {
				t.Errorf("no schedule applies %q", slices.Sorted(maps.Keys(left)))
			}
			for rule := range everyRule(spec) {
				applied[spec.Name+" "+rule] = true
			}
		})
	}
}

// apply runs a search of the algorithm, and removes the rules that it applied from those
// that are left.
func (h *hardship) apply(t *testing.T, spec *process.Spec, mode string, left map[string]bool) {
	cfg := check.Config{
		Spec: spec, Process: process.Config{N: 3}, Properties: []process.Property{}, Workers: 1, MaxStates: cmp.Or(h.states, 30_000),
	}
	if mode != "" {
		cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
	}
	h.change(&cfg)
	if len(left) == 0 || h.of != "" && h.of != spec.Name || h.mode != "" && h.mode != mode || cfg.Validate() != nil {
		return
	}
	r, err := check.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := len(left)
	maps.DeleteFunc(left, func(rule string, _ bool) bool { return !slices.Contains(r.Unreached, rule) })
	t.Logf("%s %s: %d of %d, %v", h.name, mode, before-len(left), before, r.Elapsed)
}

// everyRule returns the names of the rules of a Spec as Result.Unreached has them.
func everyRule(spec *process.Spec) map[string]bool {
	names := map[string]bool{}
	for i := range spec.Depth() {
		layer := spec.Layer(uint8(i))
		for _, rule := range layer.Rules {
			if spec.Layers != nil {
				names[layer.Name+" "+rule.Name] = true
			} else {
				names[rule.Name] = true
			}
		}
	}
	return names
}
