package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// BenchmarkRate measures the rate of a search that stops after some states.
// docs/verification.md has the rate of a complete search, over at least ten seconds.
func BenchmarkRate(b *testing.B) {
	for _, name := range []string{"ricart-agrawala", "suzuki-kasami", "lamport"} {
		b.Run(name, func(b *testing.B) {
			transitions := uint64(0)
			for b.Loop() {
				r, err := check.Run(b.Context(), check.Config{
					Spec: algorithm.Find(name), Process: process.Config{N: 3}, Entries: 4, MaxStates: 3_000_000,
				})
				if err != nil || r.Broken != nil {
					b.Fatal(err, r)
				}
				transitions += r.Transitions
			}
			b.ReportMetric(float64(transitions)/b.Elapsed().Seconds()/1e6, "Mtransitions/s")
		})
	}
}
