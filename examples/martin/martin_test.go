package main

import (
	"testing"

	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/measure"
	"github.com/conclave-io/conclave/lab/sim/simtest"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

func TestSchedules(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		simtest.Schedules(t, Spec, n)
	}
}

// TestProof goes through all schedules of three processes that enter twice. If there are too many
// states, it ends after some seconds, and says that a bound was hit: lower Entries or N.
func TestProof(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		c := check.Config{Spec: Spec, Process: process.Config{N: 3}, Entries: 2, Unordered: unordered, Liveness: true, MaxStates: 2_000_000}
		r, err := check.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != check.Proved {
			t.Errorf("unordered %v: %s", unordered, r.Sentence())
		}
		if r.Broken != nil {
			t.Errorf("%v\n%s", r.Broken, r.Scenario())
		}
	}
}

// TestCosts compares what the Spec says of its costs with what the simulator counts.
func TestCosts(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		rows, err := measure.Costs(Spec, n, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if formula, value := r.Expected(); !r.Within() {
				t.Errorf("N = %d, %s %s %s: measured %v, theory %s = %s", n, r.Regime, r.Setting, r.Metric, r.Measured, formula, value)
			}
		}
	}
}
