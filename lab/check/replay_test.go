package check_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// A run in which every message of every link is lost, and one that breaks what the
// algorithm asserts of itself, are scenarios as well, which expect what was found.
func TestOddRunsAreScenarios(t *testing.T) {
	for _, c := range []check.Config{
		{Spec: algorithm.Find("suzuki-kasami"), Process: process.Config{N: 2}, Drops: 1},
		{Spec: algorithm.Find("raymond"), Process: process.Config{N: 2}, Duplicates: 1},
	} {
		r, err := check.Run(t.Context(), c)
		if err != nil || r.Broken == nil {
			t.Fatal(err, r)
		}
		replayed(t, r)
		sc, err := r.Replay()
		if err != nil {
			t.Fatal(err)
		}
		o, err := sc.Run()
		if err != nil || !o.Met() {
			t.Errorf("%s: %v %q", c.Spec.Name, err, o.Unmet)
		}
	}
}

// A detector that is wrong once lets two in, where each needs the word of the other;
// the simulator sees the same.
func TestWrongSuspicion(t *testing.T) {
	c := check.Config{Spec: algorithm.Find("ricart-agrawala"), Process: process.Config{N: 2}, Suspicions: 1,
		Properties: []process.Property{process.MutualExclusion}}
	r, err := check.Run(t.Context(), c)
	if err != nil || r.Broken == nil || r.Broken.Property != process.MutualExclusion {
		t.Fatalf("%v %v", err, r)
	}
	replayed(t, r)
	c.Spec = algorithm.Find("raymond")
	if _, err := check.Run(t.Context(), c); err == nil {
		t.Error("raymond asks no detector, but gets a wrong one")
	}
}
