package broken_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conclave-io/conclave/algorithm/broken"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

var update = flag.Bool("update", false, "write the shortest runs in testdata anew")

// boundsOf returns the bounds of a variant, for it or for the original.
func boundsOf(v *broken.Variant, spec *process.Spec, states uint64) check.Config {
	b := v.Bounds
	cfg := check.Config{
		Spec: spec, Process: process.Config{N: b.N, Options: b.Options},
		Entries: b.Entries, Requesters: b.Clients,
		Duplicates: b.Duplicates, Timeouts: b.Timeouts, Crashes: b.Crashes, Restarts: b.Restarts, Cancels: b.Cancels,
		Corrupt: b.Corrupt, InFlight: b.InFlight,
		Workers: 1, MaxStates: states,
	}
	if b.Traitors != nil {
		cfg.Traitors = [][]process.ID{b.Traitors}
	}
	if b.Alone {
		cfg.Properties = []process.Property{v.Breaks}
	}
	if b.AnyTime {
		cfg.Timing = check.AnyTime
	}
	return cfg
}

// search runs the checker on an algorithm within the bounds of a variant.
func search(t *testing.T, cfg check.Config) *check.Result {
	t.Helper()
	result, err := check.Run(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// The checker finds every mistake within its bounds, and none in the originals within the
// same bounds. The run is a shortest one, the simulator reproduces it, and testdata has
// it.
func TestCheckerFindsEveryMistake(t *testing.T) {
	for _, v := range broken.Variants {
		t.Run(v.Name, func(t *testing.T) {
			if v.Scenario != "" {
				t.Skipf("the checker cannot judge %s in finite runs; %s shows it", v.Breaks, v.Scenario)
			}
			result := search(t, boundsOf(&v, v.Spec, 1_000_000))
			if result.Verdict != check.Violated || result.Broken.Property != v.Breaks {
				t.Fatalf("%s: %s %v, want a violation of %s; with Alone in Bounds only that one is searched", result.Config.Bounds(), result.Verdict, result.Broken, v.Breaks)
			}
			record(t, filepath.Join("testdata", "shortest", v.Name), replay(t, result))
			if original := search(t, boundsOf(&v, v.Of, 60_000)); original.Verdict == check.Violated {
				t.Errorf("the original breaks %s", original.Broken)
			}
		})
	}
}

// The checker also finds them with partial order reduction, which judges no invariant.
func TestReductionHidesNoMistake(t *testing.T) {
	found := 0
	for _, v := range broken.Variants {
		cfg := boundsOf(&v, v.Spec, 1_000_000)
		cfg.Reduce = check.PartialOrder
		if v.Scenario != "" || v.Breaks == process.StateInvariant || cfg.Validate() != nil {
			continue
		}
		found++
		if r := search(t, cfg); r.Verdict != check.Violated || r.Broken.Property != v.Breaks {
			t.Errorf("%s: %s %v, want a violation of %s", v.Name, r.Verdict, r.Broken, v.Breaks)
		}
	}
	if found < 10 {
		t.Errorf("only %d mistakes can be looked for so", found)
	}
}

// replay lets the simulator make the run that was found, and returns its trace.
func replay(t *testing.T, found *check.Result) []byte {
	t.Helper()
	s, err := found.Replay()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, in %d steps: %s\n\n", found.Config.Bounds(), len(found.Path.Steps), found.Broken)
	outcome, err := s.Trace("text", trace.Range{}, &text)
	if err != nil {
		t.Fatal(err)
	}
	if !outcome.Met() {
		t.Errorf("in the simulator %s\n%s", strings.Join(outcome.Unmet, "\n"), found.Scenario())
	}
	return text.Bytes()
}

// record compares a text with the file in which it is kept.
func record(t *testing.T, file string, text []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if diff := cmp.Diff(string(kept), string(text)); diff != "" {
		t.Errorf("%s (-update writes it anew):\n%s", file, diff)
	}
}
