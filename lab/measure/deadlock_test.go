package measure

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/conclave-io/conclave/algorithm/stack/deadlocks"
	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// TestDetectionsCostWhatTheSpecsSay measures the detection of a deadlock at many sizes.
// It compares each cost of each detector with a measurement.
func TestDetectionsCostWhatTheSpecsSay(t *testing.T) {
	compared := map[*process.Cost]bool{}
	for _, spec := range []*process.Spec{deadlocks.WaitForGraph, deadlocks.EdgeChasing, deadlocks.Diffusion} {
		for _, n := range []int{2, 3, 4, 7} {
			for i := range spec.Claims.Costs {
				c := &spec.Claims.Costs[i]
				ask := 1
				if c.Regime == process.Worst || spec == deadlocks.Diffusion {
					ask = n - 1 // all wait for all
				}
				got, err := detection(spec, n, []process.OptionValue{{Name: "mode", Value: "declare"}, {Name: "ask", Value: strconv.Itoa(ask)}}, c.Regime == process.AllStart)
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

// detectionCost is the cost of finding one deadlock.
type detectionCost struct {
	Messages uint64  // of the detector
	Time     float64 // in D: from the end of the suspicion time to the first declaration
}

// detection measures how a detector, in mode declare, finds a deadlock of n processes that all ask
// at the same moment. If the detector needs a maintainer, it is known from the start. With all, all
// processes start to search at the same moment; otherwise only process 0 does. It returns an
// error if the detector broke a claim or declared nothing.
func detection(spec *process.Spec, n int, options []process.OptionValue, all bool) (detectionCost, error) {
	const d, wait = process.Millisecond, 8 * process.Millisecond
	top := uint8(spec.Depth() - 1)
	cfg := sim.Config{Spec: spec, Process: process.Config{N: n, Delay: d, Options: options}}
	for p := range process.ID(n) {
		leader := process.ID(n - 1)
		if spec.Needs.Elector {
			cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{Process: p, Kind: process.Elected, Peer: leader, Term: process.MakeTerm(1, leader)})
		}
		cfg.Workload.Commands = append(cfg.Workload.Commands, sim.Command{At: d, Process: p, Kind: process.Acquire})
		delay := wait
		if p > 0 && !all {
			delay = process.Duration(n+3) * wait // the others start to search after the measurement
		}
		cfg.Timers = append(cfg.Timers, sim.TimerDelay{Process: p, Layer: top, Timer: 1, Delay: sim.Constant(delay)})
	}
	var cost detectionCost
	found := false
	count := func(w *sim.World) sim.Watcher {
		return sim.Watcher{Name: "detection", Messages: true, Watch: func(o *sim.Observation) string {
			switch {
			case o.Kind == sim.Delivered && !found:
				found, cost.Time = true, float64(w.Now()-d-wait)/float64(d)
			case o.Kind == sim.Sent && o.Message.Layer == top && (all || w.Now() < process.Duration(n+3)*wait):
				cost.Messages++
			}
			return ""
		}}
	}
	cfg.Judges = append(sim.Claimed(spec, &cfg.Process), count)
	result, err := sim.Run(cfg)
	if err != nil {
		return cost, err
	}
	if len(result.Violations) > 0 || !found {
		return cost, fmt.Errorf("%s with n = %d: declared %v, violations %v", spec.Name, n, found, result.Violations)
	}
	return cost, nil
}
