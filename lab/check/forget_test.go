package check_test

import (
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// forgetful are the algorithms whose machines may be forgotten while they are idle, in
// each mode, with the states of three processes, two of whose machines are forgotten. An
// algorithm that is not listed must be proved, however many states it has. In Lamport's,
// only two processes ask: with all, there are over ten million states.
var forgetful = map[string]uint64{
	"central silent": 4742, "central deny-queue": 6554, "central deny-poll": 14726,
	"central-clock": 35245,
	"lamport reply": 85884, "lamport skip": 56056,
	"ricart-agrawala fresh": 338911, "ricart-agrawala keep": 103744,
	"maekawa":        13109,
	"majority plain": 136579, "majority lease": 178721,
	"k-ricart-agrawala": 376397,
}

// TestForgets: an idle machine can be replaced by a new one at any moment, whatever
// Bases the others have.
func TestForgets(t *testing.T) {
	found := map[string]bool{}
	for _, spec := range algorithm.All {
		d := check.Config{Spec: spec, Process: process.Config{N: 3}, Forgets: 2}
		if spec.Family != process.Mutex || spec.Depth() > 1 || d.Validate() != nil {
			continue
		}
		if spec.Name == "lamport" {
			d.Requesters = []process.ID{0, 1}
		}
		for _, mode := range spec.Modes() {
			found[strings.TrimSpace(spec.Name+" "+mode)] = true
			t.Run(strings.TrimSpace(spec.Name+" "+mode), func(t *testing.T) {
				cfg := d
				if mode != "" {
					cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
				}
				r, err := check.Run(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				want, known := forgetful[strings.TrimSpace(spec.Name+" "+mode)]
				if r.Verdict != check.Proved || known && r.States != want {
					t.Errorf("%s, %d states, %v; want %d states; %v", r.Verdict, r.States, r.Broken, want, r.Elapsed)
				}
			})
		}
	}
	for name := range forgetful {
		if !found[name] {
			t.Errorf("the machines of %s cannot be forgotten", name)
		}
	}
}

// TestForgetsCentral: a client of central that takes its Base for a fence that it has
// seen cannot be forgotten. Two processes show it.
func TestForgetsCentral(t *testing.T) {
	spec := *central.Spec
	spec.New = central.Flaw{BaseSeen: true}.New
	r, err := check.Run(t.Context(), check.Config{Spec: &spec, Process: process.Config{N: 2}, Forgets: 1})
	if err != nil {
		t.Fatal(err)
	}
	if r.Broken == nil || r.Broken.Property != "" || len(r.Path.Steps) != 4 || r.Path.Steps[0].Kind != "forget" {
		t.Errorf("%s: %v, %+v", r.Verdict, r.Broken, r.Path)
	}
	if _, err := r.Replay(); err == nil || r.Scenario() != nil {
		t.Error("a run with a forgotten machine has a scenario")
	}
}

// TestForgetsRefused: no machine may be forgotten if a machine keeps a right, or if links
// or processes fail.
func TestForgetsRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(c *check.Config)
		want   string
	}{
		{"raymond", func(*check.Config) {}, "no machine of raymond may be forgotten"},
		{"ricart-agrawala", crashing, "cannot be combined with crashes"},
		{"ricart-agrawala", duplicated, "cannot be combined with crashes"},
		{"ricart-agrawala", func(c *check.Config) { c.Reduce = check.PartialOrder }, "cannot be used with forgets"},
	} {
		cfg := check.Config{Spec: algorithm.Find(c.name), Process: process.Config{N: 2}, Forgets: 1}
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
