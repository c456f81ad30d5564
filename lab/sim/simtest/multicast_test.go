package simtest_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/multicast/causal"
	"github.com/conclave-io/conclave/algorithm/multicast/fifo"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
)

// TestMulticast runs every multicast in every mode under the faults that it claims
// to survive: messages overtake each other and come twice, and senders crash between
// two sends of one multicast.
func TestMulticast(t *testing.T) {
	for _, spec := range []*process.Spec{reliable.Spec, fifo.Spec, causal.Spec, totallamport.Spec, totalsequencer.Spec} {
		for _, n := range []int{1, 2, 3, 5, 8} {
			t.Run(fmt.Sprintf("%s/n=%d", spec.Name, n), func(t *testing.T) {
				t.Parallel()
				simtest.Plan{Spec: spec, Process: process.Config{N: n}, Adjust: crowd}.Run(t)
			})
		}
	}
}

// crowd lets all multicasts of a schedule happen within a few delays, so that they meet
// in flight, and gives them different values. Otherwise, half of the schedules stay as
// drawn.
func crowd(cfg *sim.Config, seed uint64) {
	for i := range cfg.Workload.Commands {
		c := &cfg.Workload.Commands[i]
		c.Value = int64(i)
		if seed%4 < 2 {
			c.At /= 10
		}
	}
}
