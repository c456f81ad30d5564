package measure

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// MulticastCost is the cost of one multicast among n processes, while no other process sends.
type MulticastCost struct {
	Messages uint64  // of the protocol
	Delay    float64 // in D: from the multicast to the last delivery
}

// Multicast measures one multicast by the given process. It returns an error if the algorithm broke
// one of its claims.
func Multicast(spec *process.Spec, n int, mode string, by process.ID) (MulticastCost, error) {
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
		return MulticastCost{}, err
	}
	if len(result.Violations) > 0 || delivered != n {
		return MulticastCost{}, fmt.Errorf("%s with n = %d: %d deliveries, violations %v", spec.Name, n, delivered, result.Violations)
	}
	return MulticastCost{
		Messages: result.Sent(process.Protocol),
		Delay:    float64(last-start) / float64(process.Millisecond),
	}, nil
}
