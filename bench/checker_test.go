package main

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

func needSpin(t *testing.T) {
	for _, name := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
}

// TestSpinFindsTheSameStates checks that the Spin model and Conclave's machines have the same
// numbers of states and transitions. Only then can their rates be compared.
func TestSpinFindsTheSameStates(t *testing.T) {
	needSpin(t)
	for _, bounds := range [][2]int{{2, 1}, {2, 3}, {3, 1}, {3, 2}} {
		n, entries := bounds[0], bounds[1]
		file, err := verifier(t.Context(), t.TempDir(), n, entries, "", "-DNOREDUCE")
		if err != nil {
			t.Fatal(err)
		}
		spin, err := runSpin(t.Context(), file, entries)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := check.Run(t.Context(), check.Config{
			Spec: ricartagrawala.Spec, Process: process.Config{N: n}, Entries: entries,
			Properties: []process.Property{process.MutualExclusion},
		})
		if err != nil || ours.Verdict != check.Proved {
			t.Fatal(ours, err)
		}
		if spin.States != ours.States || spin.Transitions != ours.Transitions {
			t.Errorf("N=%d, %d entries each: Spin finds %d states and %d transitions, and the checker %d and %d",
				n, entries, spin.States, spin.Transitions, ours.States, ours.Transitions)
		}
	}
}

func TestSpinFindsTheMistakes(t *testing.T) {
	needSpin(t)
	for _, variant := range []string{"NO_TIE_BREAK", "DEAF_CLOCK"} {
		file, err := verifier(t.Context(), t.TempDir(), 3, 1, variant, "-DNOREDUCE")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := runSpin(t.Context(), file, 1); !errors.Is(err, errViolated) || !strings.Contains(err.Error(), "inside==1") {
			t.Errorf("%s: the error is %v; expected the violation of inside==1", variant, err)
		}
	}
}

// TestSearchTable checks that several rounds become one line, and that a searcher without results
// has no line.
func TestSearchTable(t *testing.T) {
	name := searchers[1].name
	text := searchTable([]searched{
		{Searcher: name, States: 10, Transitions: 20, Rate: 1e6, Seconds: 2, BytesPerState: 30},
		{Searcher: name, States: 10, Transitions: 20, Rate: 3e6, Seconds: 1, BytesPerState: 30},
	})
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 || !slices.Contains(lines, "| "+name+" | 10 | 20 | 2.00 (1.00 to 3.00) | 1.50 (1.00 to 2.00) | 30.0 |") {
		t.Error(text)
	}
}
