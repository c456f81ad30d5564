package sim_test

import (
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/dijkstra"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// corrupted begins in a random state, with two messages on each link that nobody has sent.
func corrupted(seed uint64, values string) sim.Config {
	r := rand.New(rand.NewPCG(seed, 3))
	cfg := sim.Config{
		Spec: dijkstra.Spec, Seed: seed, Limit: sim.Limit{Until: 600 * ms}, Judges: []sim.Judge{sim.Convergence},
		Process: process.Config{N: 4, Options: []process.OptionValue{{Name: "values", Value: values}}},
	}
	for p := range process.ID(4) {
		cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Corrupt, Process: p, State: r.IntN(9)})
		for range 2 {
			cfg.Faults = append(cfg.Faults, sim.Fault{Kind: sim.Forge, Message: "VAL", From: p, To: (p + 1) % 4, Value: r.Int64N(3)})
		}
	}
	return cfg
}

// With sixteen values everything converges. With three, wrong privileges may circulate
// forever.
func TestConvergence(t *testing.T) {
	lost := 0
	for seed := range uint64(200) {
		r, err := sim.Run(corrupted(seed, "16"))
		if err != nil || len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v, %v", seed, err, r.Violations)
		}
		if r, err = sim.Run(corrupted(seed, "3")); err != nil {
			t.Fatal(err)
		}
		if len(r.Violations) > 0 {
			lost++
			if v := r.Violations[0]; v.Property != process.Convergence {
				t.Errorf("seed %d: %v", seed, v)
			}
		}
	}
	if lost == 0 {
		t.Error("three values were enough for each of 200 runs")
	}
}
