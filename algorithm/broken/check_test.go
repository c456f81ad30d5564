package broken_test

import (
	"context"
	"testing"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/check"
	"github.com/conclave-io/conclave/process"
)

// search is what the checker makes of an algorithm within the bounds of a variant.
func search(t *testing.T, v *broken.Variant, spec *process.Spec, states uint64) *check.Result {
	t.Helper()
	b := v.Bounds
	cfg := check.Config{
		Spec: spec, Process: process.Config{N: b.N, Options: b.Options},
		Entries: b.Entries, Requesters: b.Clients,
		Duplicates: b.Duplicates, Crashes: b.Crashes,
		Workers: 1, MaxStates: states,
	}
	if b.Alone {
		cfg.Properties = []process.Property{v.Breaks}
	}
	if b.AnyTime {
		cfg.Timing = check.AnyTime
	}
	result, err := check.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The checker finds every mistake within its bounds, and none in as much of the
// originals.
func TestCheckerFindsEveryMistake(t *testing.T) {
	for _, v := range broken.Variants {
		t.Run(v.Name, func(t *testing.T) {
			if !check.Checkable(v.Breaks) {
				t.Skipf("the checker cannot judge %s; chance finds it in the simulator", v.Breaks)
			}
			result := search(t, &v, v.Spec, 1_000_000)
			if result.Verdict != check.Violated || result.Broken.Property != v.Breaks {
				t.Fatalf("%s: %s %v, want a violation of %s", result.Config.Bounds(), result.Verdict, result.Broken, v.Breaks)
			}
			original := search(t, &v, v.Of, 60_000)
			if original.Verdict == check.Violated {
				t.Errorf("the original breaks %s", original.Broken)
			}
		})
	}
}
