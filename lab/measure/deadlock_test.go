package measure

import (
	"strconv"
	"testing"

	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/process"
)

// TestDetectionsCostWhatTheSpecsSay measures the detection of a deadlock at many sizes.
// It compares each cost of each detector with a measurement.
func TestDetectionsCostWhatTheSpecsSay(t *testing.T) {
	compared := map[*process.Cost]bool{}
	for _, spec := range []*process.Spec{stack.WaitForGraph, stack.EdgeChasing, stack.Diffusion} {
		for _, n := range []int{2, 3, 4, 7} {
			for i := range spec.Claims.Costs {
				c := &spec.Claims.Costs[i]
				ask := 1
				if c.Regime == process.Worst || spec == stack.Diffusion {
					ask = n - 1 // all wait for all
				}
				got, err := Detection(spec, n, []process.OptionValue{{Name: "mode", Value: "declare"}, {Name: "ask", Value: strconv.Itoa(ask)}}, c.Regime == process.AllStart)
				if err != nil {
					t.Fatal(err)
				}
				compared[c] = true
				is, params := float64(got.Messages), process.Params{N: n}
				if c.Metric == process.DetectionTime {
					is = got.Time
				}
				if c.Exact != nil && is != c.Exact.Eval(params) || c.Hi != nil && is > c.Hi.Eval(params) {
					t.Errorf("%s, N = %d, %s, %s: %v, theory %+v", spec.Name, n, c.Metric, c.When, is, c)
				}
			}
		}
	}
	if len(compared) != 7 {
		t.Errorf("%d costs were compared, want 7", len(compared))
	}
}
