package engine_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/lab/engine"
)

// BenchmarkOpen runs scenarios of 100,000 records.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			e := engine.New(engine.Options{Send: func(engine.Frame) {}})
			for b.Loop() {
				e.Receive(&engine.Request{ID: 1, Call: engine.CallOpen, Text: fmt.Sprintf(
					"algorithm: ricart-agrawala\nn: %d\nworkload: {regime: saturated}\nlimit: {events: 100000}\n", n)})
				for e.Work() {
				}
				e.Close()
			}
			b.ReportMetric(100_000*float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}
