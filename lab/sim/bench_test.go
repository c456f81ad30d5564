package sim_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// saturated is a run that continues forever.
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
	for _, spec := range []*process.Spec{central.Spec, ricartagrawala.Spec, tokenring.Spec} {
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

// Time per event with few and with many messages on their way: a thousand processes pass
// each message on to the next. The difference between a million and a thousand pending
// messages is the cost of the queue and the cache.
func BenchmarkPending(b *testing.B) {
	const processes = 1000
	for _, each := range []int{1, 1000} {
		b.Run(fmt.Sprintf("pending=%d", processes*each), func(b *testing.B) {
			w := warm(b, relay(processes, each), 3*processes*each)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				w.Step()
			}
			if pending := w.Pending(); pending != processes*each {
				b.Errorf("%d messages are pending, want %d", pending, processes*each)
			}
		})
	}
}

// relay is a run in which every process sends a number of messages to the next
// at the start and passes on what it gets.
func relay(n, each int) sim.Config {
	spec := *ringSpec
	spec.Claims = process.Claims{}
	spec.New = func(self process.ID, c *process.Config) process.Machine {
		next := c.Topology.Next(self, c.N)
		return &probe{self: self, c: c, rules: func(_ *probe, ev *process.Event, fx *process.Effects) {
			switch ev.Kind {
			case process.Start:
				for range each {
					fx.Send(next, process.Message{Type: 1})
				}
			case process.Deliver:
				fx.Send(next, process.Message{Type: 1})
			}
		}}
	}
	return sim.Config{
		Spec: &spec, Seed: 1, Process: process.Config{N: n},
		Links: sim.Links{Link: sim.Link{Delay: sim.Uniform(ms/2, 3*ms/2), Unordered: true}},
		Limit: sim.Limit{Until: 1 << 60},
	}
}

// A token ring of a million processes must stay under a gigabyte if all of them want to
// enter.
func BenchmarkMillionRing(b *testing.B) {
	for range b.N {
		before := heap()
		w := warm(b, saturated(tokenring.Spec, 1_000_000), 5_000_000)
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
