package simtest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/lease"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// leased is a run in which all clients ask repeatedly and often stay until their
// deadlines. Clocks drift by some parts per million, and messages are late and lost.
func leased(spec *process.Spec, n, drift int, seed uint64) sim.Config {
	r := rand.New(rand.NewPCG(seed, 17))
	cfg := sim.Config{
		Spec: spec, Seed: seed, Process: process.Config{N: n, Section: ms, Options: []process.OptionValue{{Name: "ttl", Value: "20"}}},
		Workload: sim.Workload{Regime: sim.Loaded, Section: sim.Uniform(1, 40*ms), Think: sim.Uniform(1, 10*ms)},
		Limit:    sim.Limit{Entries: 20, Until: 5000 * ms},
	}
	cfg.Links.Delay, cfg.Links.Drop, cfg.Links.Duplicate, cfg.Links.Unordered = sim.Uniform(ms/10, ms), 0.05, 0.05, true
	for range n {
		cfg.Clocks = append(cfg.Clocks, sim.Clock{Offset: process.Duration(r.Int64N(int64(50 * ms))), Drift: drift * (2*r.IntN(2) - 1)})
	}
	return cfg
}

// A lease outlives the stay of its holder up to the drift that the margin allows, m/(2-m)
// of the time, but not up to six times that. Fences of the single server grow with any.
func TestDriftWithinTheMargin(t *testing.T) {
	for _, spec := range []*process.Spec{lease.Spec, lease.Redlock} {
		broken := 0
		for seed := range uint64(150) {
			within, err := sim.Run(leased(spec, 6, 52_000, seed))
			if err != nil {
				t.Fatal(err)
			}
			if len(within.Violations) > 0 || within.Entries < 10 {
				t.Fatalf("%s, seed %d: %v in %d entries", spec.Name, seed, within.Violations, within.Entries)
			}
			beyond, err := sim.Run(leased(spec, 6, 300_000, seed))
			if err != nil {
				t.Fatal(err)
			}
			if v := beyond.Violations; len(v) > 0 {
				broken++
				if v[0].Property != process.MutualExclusion {
					t.Errorf("%s, seed %d: %v", spec.Name, seed, v)
				}
			}
			fences := leased(lease.Spec, 6, 300_000, seed)
			fences.Judges = []sim.Judge{sim.FencesGrow}
			if r, err := sim.Run(fences); err != nil || len(r.Violations) > 0 {
				t.Fatalf("seed %d: %v, %v", seed, r, err)
			}
		}
		if broken < 30 {
			t.Errorf("%s: two are inside in only %d of 150 runs", spec.Name, broken)
		}
	}
}
