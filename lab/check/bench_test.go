package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// BenchmarkRate is the rate of a search that is cut off after some states; that of a
// whole one, over ten seconds and more, is in docs/verification.md.
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
