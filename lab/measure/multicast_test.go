package measure

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/stack/ordered"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// delays are those from a multicast to its last delivery, in D, by sender: the
// coordinator of the topology, or another process.
var delays = map[string]struct{ coordinator, other float64 }{
	"reliable-multicast": {1, 1},
	"fifo-multicast":     {1, 1},
	"causal-multicast":   {1, 1},
	"total-lamport":      {2, 2},
	"total-sequencer":    {1, 2},
}

// TestMulticastsCostWhatTheSpecsSay measures one multicast of every algorithm in
// every mode, at every size that costs little, by the coordinator and by another
// process.
func TestMulticastsCostWhatTheSpecsSay(t *testing.T) {
	for _, spec := range algorithm.All {
		if spec.Family != process.Multicast {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			if _, known := delays[spec.Name]; !known {
				t.Fatalf("nobody says how long a delivery of %s takes", spec.Name)
			}
			for _, mode := range spec.Modes() {
				for n := 2; n <= 50; n++ {
					checkMulticast(t, spec, n, mode)
				}
				checkMulticast(t, spec, 100, mode)
			}
		})
	}
}

func checkMulticast(t *testing.T, spec *process.Spec, n int, mode string) {
	t.Helper()
	for by, want := range []float64{delays[spec.Name].coordinator, delays[spec.Name].other} {
		got, err := multicast(spec, n, mode, process.ID(by))
		if err != nil {
			t.Fatal(err)
		}
		theory := multicastTheory(t, spec, n, mode, by == 0)
		if float64(got.Messages) != theory || got.Delay != want {
			t.Errorf("N = %d, mode %q, by %d: %d messages and %v D, theory %v and %v", n, mode, by+1, got.Messages, got.Delay, theory, want)
		}
	}
}

// multicastTheory is what the Spec says of a mode. If there is a sequencer, the Spec has
// the costs of the other processes first, then those of the sequencer.
func multicastTheory(t *testing.T, spec *process.Spec, n int, mode string, coordinator bool) float64 {
	t.Helper()
	var said []*process.Formula
	for _, c := range spec.Claims.Costs {
		if c.Metric == process.MessagesPerMulticast && (c.Mode == "" || c.Mode == mode) {
			said = append(said, c.Exact)
		}
	}
	which := 0
	if coordinator && spec.Needs.Topology == process.Centre {
		which = 1
	}
	if len(said) <= which || said[which] == nil {
		t.Fatalf("%s says nothing of mode %q", spec.Name, mode)
	}
	return said[which].Eval(process.Params{N: n})
}

// TestTotalOrdersCostWhatTheySay measures mutual exclusion over each total order. Its
// messages grow with the square of the processes, so that the windows are short.
func TestTotalOrdersCostWhatTheySay(t *testing.T) {
	sizes := sizes()
	if !testing.Short() {
		sizes = append(sizes, 100)
	}
	for _, spec := range []*process.Spec{ordered.TotalOrder, ordered.TotalOrderSequencer} {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			for _, n := range sizes {
				rows, err := Costs(spec, n, true)
				if err != nil {
					t.Fatal(err)
				}
				for _, complaint := range outside(rows) {
					t.Error(complaint)
				}
				if len(rows) < 4 && n > 2 { // messages twice, both delays
					t.Errorf("N = %d: only %d figures", n, len(rows))
				}
			}
		})
	}
}

// multicastCost is the cost of one multicast among n processes, while no other process sends.
type multicastCost struct {
	Messages uint64  // of the protocol
	Delay    float64 // in D: from the multicast to the last delivery
}

// multicast measures one multicast by the given process. It returns an error if the algorithm broke
// one of its claims.
func multicast(spec *process.Spec, n int, mode string, by process.ID) (multicastCost, error) {
	start := process.Millisecond
	last, delivered := process.Duration(0), 0
	clock := func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "last delivery", Watch: func(o *sim.Observation) string {
			if o.Kind == sim.Delivered {
				last, delivered = w.Now(), delivered+1
			}
			return ""
		}}
	}
	cfg := sim.Config{
		Spec: spec, Process: process.Config{N: n, Delay: process.Millisecond},
		Workload: sim.Workload{Commands: []sim.Command{{At: start, Process: by, Kind: process.Propose, Value: 1}}},
	}
	if mode != "" {
		cfg.Process.Options = []process.OptionValue{{Name: "mode", Value: mode}}
	}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), clock)
	result, err := sim.Run(cfg)
	if err != nil {
		return multicastCost{}, err
	}
	if len(result.Violations) > 0 || delivered != n {
		return multicastCost{}, fmt.Errorf("%s with n = %d: %d deliveries, violations %v", spec.Name, n, delivered, result.Violations)
	}
	return multicastCost{
		Messages: result.Sent(process.Protocol),
		Delay:    float64(last-start) / float64(process.Millisecond),
	}, nil
}
