package cli

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
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
		if flags.Changed(name) && top.Family != process.Mutex {
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
