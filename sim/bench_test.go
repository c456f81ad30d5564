package sim_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
)

// saturated is a run that goes on for ever.
func saturated(spec *process.Spec, n int) sim.Config {
	return sim.Config{
		Spec: spec, Seed: 1, Process: process.Config{N: n, Section: 1},
		Links:    sim.Links{Link: sim.Link{Delay: sim.Uniform(ms/2, 3*ms/2)}},
		Workload: sim.Workload{Regime: sim.Saturated},
		Limit:    sim.Limit{Until: 1 << 60}, Judges: []sim.Judge{sim.AtMost(1), sim.FencesGrow},
	}
}

func warm(tb testing.TB, cfg sim.Config, events int) *sim.World {
	tb.Helper()
	w, err := sim.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	for range events {
		if !w.Step() {
			reason, _ := w.Ended()
			tb.Fatalf("the run ended: %s %v", reason, w.Result().Violations)
		}
	}
	return w
}

// Events per second of a saturated run, trace off. The aim is five million for
// Ricart-Agrawala with a hundred processes.
func BenchmarkSaturated(b *testing.B) {
	for _, spec := range []*process.Spec{central.Spec, ricartagrawala.Spec, ringSpec} {
		b.Run(fmt.Sprintf("%s/n=100", spec.Name), func(b *testing.B) {
			w := warm(b, saturated(spec, 100), 200_000)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				w.Step()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}

// A ring of a million processes must stay under a gigabyte.
func BenchmarkMillionRing(b *testing.B) {
	for range b.N {
		before := heap()
		w := warm(b, ringConfig(1_000_000), 3_000_000)
		used := heap() - before
		b.ReportMetric(float64(used)/(1<<20), "MiB")
		if used > 1<<30 {
			b.Errorf("a million processes take %d bytes, more than a gigabyte", used)
		}
		runtime.KeepAlive(w)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
