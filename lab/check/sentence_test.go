package check_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/scenario"
	"github.com/conclave-io/conclave/process"
)

// TestOneSentence: the simulator describes each violation that the checker finds with the
// same words, and names the same process. The test covers every broken variant, each
// property that it breaks, also alone, and a failed assertion.
func TestOneSentence(t *testing.T) {
	said := map[string]bool{}
	for _, v := range broken.Variants {
		for _, alone := range append(check.AllClaimed(v.Of, &process.Config{N: v.Bounds.N, Options: v.Bounds.Options}), v.Breaks, "") {
			if alone != "" && !check.Checkable(alone) {
				continue
			}
			b := v.Bounds
			cfg := check.Config{
				Spec: v.Spec, Process: process.Config{N: b.N, Options: b.Options}, Entries: b.Entries, Requesters: b.Clients,
				Duplicates: b.Duplicates, Crashes: b.Crashes, Restarts: b.Restarts, Cancels: b.Cancels, Workers: 1, MaxStates: 20_000,
			}
			if b.Traitors != nil {
				cfg.Traitors = [][]process.ID{b.Traitors}
			}
			if b.AnyTime {
				cfg.Timing = check.AnyTime
			}
			if alone != "" {
				cfg.Properties = []process.Property{alone}
			}
			r, err := check.Run(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if r.Broken != nil {
				said[r.Broken.Property.String()] = true
				t.Run(v.Name+" "+alone.String(), func(t *testing.T) { replayed(t, r) })
			}
		}
	}
	if len(said) < 10 {
		t.Errorf("only %d properties were broken: %v", len(said), said)
	}
}

// The scenarios that the audit has found tell what the checker said.
func TestScenariosTellTheSentence(t *testing.T) {
	files, err := filepath.Glob("../../lab/scenarios/assumptions/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatal(err, len(files))
	}
	for _, file := range files {
		sc, err := scenario.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		o, err := sc.Run()
		if err != nil {
			t.Fatal(err)
		}
		_, said, found := strings.Cut(sc.About, "): ")
		if v := o.Result.Violations; !found || len(v) == 0 && sc.Config().Judges == nil || len(v) > 0 && !strings.HasSuffix(said, ": "+v[0].Text) {
			t.Errorf("%s: the file says %q, the simulator finds %v", file, said, v)
		}
	}
}
