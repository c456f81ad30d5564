package check_test

import (
	"slices"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// booked are the properties that need a memory of their own.
var booked = []process.Property{process.OrderTimestamp, process.OrderArrival, process.OneToken}

// TestOrders: an algorithm that claims an order of time stamps or of arrival, or one
// token, keeps the claim in every schedule of small worlds.
func TestOrders(t *testing.T) {
	claimed := map[process.Property]int{}
	for _, spec := range algorithm.All {
		for _, mode := range spec.Modes() {
			cfg := check.Config{Spec: spec, MaxStates: 20_000, Workers: 1}
			if mode != "" {
				cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
			}
			cfg.Properties = slices.DeleteFunc(check.AllClaimed(spec, &cfg.Process), func(p process.Property) bool { return !slices.Contains(booked, p) })
			for _, p := range cfg.Properties {
				claimed[p]++
			}
			if len(cfg.Properties) > 0 {
				t.Run(spec.Name+" "+mode, func(t *testing.T) { keepsOrders(t, cfg) })
			}
		}
	}
	for _, p := range booked {
		if claimed[p] < 2 {
			t.Errorf("%d claim %s", claimed[p], p)
		}
	}
}

func keepsOrders(t *testing.T, cfg check.Config) {
	for _, change := range []func(c *check.Config){
		func(c *check.Config) { c.Process.N, c.Entries = 2, 3 },
		func(c *check.Config) { c.Process.N, c.Entries = 3, 2 },
		func(c *check.Config) { c.Process.N, c.Cancels = 3, 1 },
		func(c *check.Config) { c.Process.N, c.Timing, c.Timeouts = 3, check.AnyTime, 2 },
		func(c *check.Config) { c.Process.N, c.Crashes, c.Timeouts = 3, 1, 3 },
	} {
		c := cfg
		change(&c)
		fragile := c.Crashes > 0 && !c.Spec.Survives(process.CrashAny, c.Spec.Mode(&c.Process))
		if fragile || c.Validate() != nil || c.Timing == check.AnyTime && c.Spec.Needs.Synchrony {
			continue
		}
		r, err := check.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Broken != nil {
			t.Errorf("%s: %s\n%s", c.Bounds(), r.Broken, r.Scenario())
		}
	}
}

// TestTokenOfATerm: a takeover after a false alarm creates a new token while the old one
// still exists. The algorithm promises one token per term.
func TestTokenOfATerm(t *testing.T) {
	for _, name := range []string{"token-ring-recovering", "token-ring-swim"} {
		r, err := check.Run(t.Context(), check.Config{
			Spec: algorithm.Find(name), Process: process.Config{N: 2}, Timing: check.AnyTime, Timeouts: 4,
			Properties: []process.Property{process.OneToken}, MaxStates: 20_000, Workers: 1,
		})
		if err != nil || r.Broken != nil {
			t.Errorf("%s: %v %v", name, err, r.Broken)
		}
	}
}

// TestOrdersBroken: the checker finds a broken order, two tokens, and a missing token,
// and the simulator judges the same run in the same way.
func TestOrdersBroken(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks process.Property
		change func(c *check.Config)
	}{
		{"ricart-agrawala", process.OrderTimestamp, func(c *check.Config) {
			c.Entries, c.Process.Options = 2, []process.OptionValue{{Name: "mode", Value: "keep"}}
		}},
		{"lamport", process.OrderTimestamp, func(c *check.Config) { c.Drops = 1 }},
		{"central-own-first", process.OrderArrival, func(*check.Config) {}},
		{"token-ring-makes-tokens", process.OneToken, func(c *check.Config) { c.Timing = check.AnyTime }},
		{"suzuki-kasami", process.OneToken, func(c *check.Config) { c.Drops = 1 }},
		{"token-ring-accepts-copies", process.OneToken, func(c *check.Config) { c.Duplicates = 1 }},
	} {
		c := check.Config{Spec: algorithm.Find(test.name), Process: process.Config{N: 3}, Properties: []process.Property{test.breaks}, MaxStates: 100_000}
		test.change(&c)
		r, err := check.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Broken == nil || r.Broken.Property != test.breaks {
			t.Errorf("%s: %s, %v", test.name, r.Sentence(), r.Broken)
			continue
		}
		t.Logf("%s: %s", test.name, r.Broken)
		replayed(t, r)
	}
}
