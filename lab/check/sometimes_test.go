package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// silent is a machine that never lets anybody enter, and so keeps mutual exclusion.
type silent struct{}

func (silent) Step(*process.Event, *process.Effects) {}

func (silent) Fields(*process.Fields) {}

// TestVacuous: machines that do nothing are proved, and the result says that the proof is
// vacuous.
func TestVacuous(t *testing.T) {
	r, err := check.Run(t.Context(), check.Config{
		Spec: &process.Spec{
			Name: "silent", Family: process.Mutex,
			New: func(process.ID, *process.Config) process.Machine { return silent{} },
		},
		Process: process.Config{N: 2}, Crashes: 2, Drops: 1, Properties: []process.Property{process.MutualExclusion},
	})
	if err != nil || r.Verdict != check.Proved {
		t.Fatal(err, r)
	}
	got := map[string]bool{}
	for _, s := range r.Sometimes {
		got[s.What] = s.Reached
	}
	want := map[string]bool{
		"somebody enters": false, "somebody waits while another is inside": false, "all who ask wait at once": true,
		"somebody crashes inside": false, "somebody crashes while it waits": true, "somebody enters after a crash": false,
		"2 crashes": true, "1 loss": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNobodyHasToGiveUp: a client that could give up does not help one that waits
// forever.
func TestNobodyHasToGiveUp(t *testing.T) {
	r, err := check.Run(t.Context(), check.Config{
		Spec: &process.Spec{
			Name: "silent", Family: process.Mutex, Cancels: true,
			New: func(process.ID, *process.Config) process.Machine { return silent{} },
		},
		Process: process.Config{N: 1}, Cancels: 1, Properties: []process.Property{process.Progress},
	})
	if err != nil || r.Broken == nil || len(r.Path.Steps) != 1 {
		t.Errorf("%v %v", err, r)
	}
}

// TestSometimes: the searches of every algorithm visit the states that make a proof
// meaningful, with and without crashes.
func TestSometimes(t *testing.T) {
	for _, spec := range algorithm.All {
		if c := (check.Config{Spec: spec, Process: process.Config{N: 3}}); c.Validate() != nil || len(check.Claimed(spec, &c.Process)) == 0 {
			continue
		}
		t.Run(spec.Name, func(t *testing.T) {
			missed := map[string]bool{}
			for _, change := range []func(c *check.Config){
				func(*check.Config) {},
				crashing,
				func(c *check.Config) { c.Crashes, c.Order = 1, check.DepthFirst },
				func(c *check.Config) { c.Crashes, c.Order, c.Properties = 1, check.DepthFirst, []process.Property{} },
				cancelling,
			} {
				cfg := check.Config{Spec: spec, Process: process.Config{N: 3}, Timeouts: 3, MaxStates: 30_000, Workers: 1}
				if spec.Lies != nil {
					cfg.Timeouts = 0 // it decides when all its rounds are over
				}
				if change(&cfg); cfg.Validate() != nil {
					continue
				}
				r, err := check.Run(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range r.Sometimes {
					if still, known := missed[s.What]; still || !known {
						missed[s.What] = !s.Reached
					}
				}
			}
			for what, is := range missed {
				if is {
					t.Errorf("never: %s", what)
				}
			}
		})
	}
}
