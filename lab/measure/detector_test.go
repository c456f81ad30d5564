package measure

import (
	"math"
	"testing"

	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/process"
)

// TestDetectorsCostWhatTheyShould: every figure with a formula equals the formula, and a
// detector that waits longer makes fewer mistakes.
func TestDetectorsCostWhatTheyShould(t *testing.T) {
	for _, n := range []int{3, 6} {
		rows, err := Detectors(n)
		if err != nil {
			t.Fatal(err)
		}
		before := map[string]float64{}
		for i := range rows {
			r := &rows[i]
			if !r.Within() || r.Bounds != nil && (r.Measured < r.Bounds[0] || r.Measured > r.Bounds[1]) {
				t.Errorf("N = %d: %s, %s, %s: measured %v, theory %v, bounds %v", n, r.Algorithm, r.Regime, r.Metric, r.Measured, *r.Theory, r.Bounds)
			}
			if r.Metric != FalseSuspicions {
				continue
			}
			if more, ok := before[r.Algorithm]; ok && r.Measured > more+0.5 {
				t.Errorf("N = %d: %s with %s is wrong %v times, with the smaller setting %v", n, r.Algorithm, r.Regime, r.Measured, more)
			}
			before[r.Algorithm] = r.Measured
		}
	}
}

// TestDetectorTheoryIsThatOfTheSpecs: for the settings that the Specs speak of.
func TestDetectorTheoryIsThatOfTheSpecs(t *testing.T) {
	for _, p := range []detectorSetting{
		{heartbeat.Spec, "beat-timeout", 13, 4, 13},
		{heartbeat.Reliable, "beat-timeout", 13, 4, 13},
		{phiaccrual.Spec, "phi", 8, 4, phiaccrual.Wait(4, 8)},
		{spec: swim.Spec, option: "swim-period", value: 8, period: 8},
	} {
		for n := 3; n <= 50; n++ {
			params := process.Params{N: n}
			for _, c := range p.spec.Claims.Costs {
				switch c.Metric {
				case process.MessagesPerPeriod:
					same(t, p.spec, *p.messagesByTheory(n), c.Exact, params)
				case process.DetectionTime:
					bounds := p.detectionBounds(n)
					same(t, p.spec, bounds[0], c.Lo, params)
					same(t, p.spec, bounds[1], c.Hi, params)
					if c.Mean != nil {
						same(t, p.spec, *p.detectionByTheory(n), c.Mean, params)
					}
				}
			}
		}
	}
}

func same(t *testing.T, spec *process.Spec, got float64, want *process.Formula, params process.Params) {
	t.Helper()
	if math.Abs(got-want.Eval(params)) > 1e-9 {
		t.Errorf("%s, N = %d: %v, the Spec says %s = %v", spec.Name, params.N, got, want.Text, want.Eval(params))
	}
}
