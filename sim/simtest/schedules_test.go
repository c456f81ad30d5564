package simtest_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/sim"
	"github.com/conclave-io/conclave/sim/simtest"
)

// TestMutualExclusion runs every algorithm for mutual exclusion that works and
// stands alone, in its default mode, under the faults that it claims to survive.
func TestMutualExclusion(t *testing.T) {
	for _, spec := range algorithm.All {
		if spec.Family != process.Mutex || spec.Layers != nil || losesRequests(spec) {
			continue
		}
		for _, n := range []int{1, 2, 3, 5, 8} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				plan := simtest.Plan{Spec: spec, Process: configuration(spec, n)}
				if votes(spec) {
					// What survives there depends on who is asked for a vote, which
					// their own tests go through.
					plan.Special = func(*sim.World, process.ID) bool { return true }
				}
				plan.Run(t)
			})
		}
	}
}

// votes reports whether processes lend each other votes, which a crash takes
// along.
func votes(spec *process.Spec) bool {
	return spec.Needs.Topology == process.Quorums || spec == majority.Spec
}

// losesRequests reports whether a Spec says that requests may wait for ever: it
// is one of the broken.
func losesRequests(spec *process.Spec) bool {
	for _, c := range spec.Claims.Properties {
		if c.Property == process.Progress && c.Fails {
			return true
		}
	}
	return false
}

func configuration(spec *process.Spec, n int) process.Config {
	c := process.Config{N: n}
	if spec.Needs.Topology == process.Quorums {
		c.Topology.Quorums = process.VotingSets(n)
	}
	for _, o := range spec.Options {
		if o.Name == "mode" {
			c.Options = []process.OptionValue{{Name: o.Name, Value: o.Default}}
		}
	}
	return c
}
