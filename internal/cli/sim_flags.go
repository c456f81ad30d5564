package cli

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// given says which flags were given.
type given interface{ Changed(name string) bool }

// enteringFlags are about clients that enter.
var enteringFlags = []string{"entries", "warmup", "section", "think"}

// applicable refuses flags that the run from flags has no use for: who gives one
// expects that it does something.
func (s *simulation) applicable(flags given, cfg *sim.Config) error {
	top := cfg.Spec.Layer(uint8(cfg.Spec.Depth() - 1))
	for _, name := range enteringFlags {
		if flags.Changed(name) && !top.Family.Locks() {
			return fmt.Errorf("--%s: with %s (%s) nobody enters; leave it out", name, cfg.Spec.Name, top.Family)
		}
	}
	if flags.Changed("think") && cfg.Workload.Regime == sim.Saturated {
		return fmt.Errorf("--think %q: saturated clients ask again at once; give --regime idle or loaded beside it", s.think)
	}
	return nil
}

// onTree reports whether an algorithm has use for a tree.
func onTree(spec *process.Spec) bool {
	trees := func(s *process.Spec) bool { return s.Needs.Topology == process.Tree }
	return trees(spec) || slices.ContainsFunc(spec.Layers, trees)
}

// occasion is what has to be asked for, that something happens, of algorithms for
// which nobody enters. What those do by themselves that are not here needs no word.
func occasion(top *process.Spec, cfg *sim.Config) []sim.Command {
	d, n := cfg.Process.D(), cfg.Process.N
	switch {
	case top.Family == process.Election:
		return []sim.Command{{At: d, Kind: process.Campaign}}
	case top.Family == process.GlobalState:
		return []sim.Command{{At: d, Kind: process.Record}}
	case top.Family == process.Multicast:
		both := []sim.Command{{At: d, Kind: process.Propose, Value: 1}, {At: d, Kind: process.Propose, Process: 1, Value: 2}}
		return both[:min(n, len(both))]
	case top.Family == process.Agreement:
		var each []sim.Command
		for p := range process.ID(n) {
			each = append(each, sim.Command{At: d, Kind: process.Propose, Process: p, Value: int64(cfg.Process.Label(p))})
		}
		return each
	case top.Family == process.Transaction:
		var each []sim.Command
		for p := range process.ID(n) {
			each = append(each, sim.Command{At: d, Kind: process.Propose, Process: p, Value: process.Commit})
		}
		return each
	case top.Family == process.ClockSync && top.Carrier:
		var each []sim.Command
		for p := range n {
			each = append(each, sim.Command{
				At: process.Duration(p+1) * d, Process: process.ID(p), Kind: process.Propose, Value: int64(cfg.Process.Label(process.ID((p + 1) % n))),
			})
		}
		return each
	}
	return nil
}
