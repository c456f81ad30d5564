package lab_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/conclave-io/conclave/internal/cli/clitest"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// compareWith runs compare and returns what it prints.
func compareWith(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return clitest.Run(append([]string{"compare"}, args...)...)
}

// TestComparisonIsCurrent fails when docs/comparison.md is not what the
// simulator measures; "make comparison" writes it.
func TestComparisonIsCurrent(t *testing.T) {
	written, err := os.ReadFile("../../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	status, measured, said := compareWith(t, "-n", "10", "--markdown")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	if measured != string(written) {
		t.Error("docs/comparison.md is not what the simulator measures now; run make comparison")
	}
}

func TestCompareAsJSON(t *testing.T) {
	status, printed, said := compareWith(t, "-n", "3,4", "--algorithms", "lamport,token-ring", "--json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(printed), &rows); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, r := range rows {
		for _, key := range []string{"algorithm", "n", "regime", "metric", "theory", "bounds", "measured"} {
			if _, has := r[key]; !has {
				t.Fatalf("a row is %v", r)
			}
		}
		if _, drawn := r["setting"]; drawn != (r["algorithm"] == "token-ring" && r["metric"] == "client_delay") {
			t.Errorf("a row has a setting, or lacks it: %v", r)
		}
		seen[r["algorithm"].(string)+" "+r["regime"].(string)+" "+r["metric"].(string)] = true
		if r["algorithm"] == "lamport" && r["metric"] == "messages_per_entry" && (r["theory"] != r["measured"] || r["theory"] != 3*(r["n"].(float64)-1)) {
			t.Errorf("Lamport's algorithm costs %v", r)
		}
	}
	for _, want := range []string{"lamport idle client_delay", "token-ring saturated sync_delay", "lamport saturated throughput", "token-ring saturated jain"} {
		if !seen[want] {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestComparePlots(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "plot.svg")
	status, _, said := compareWith(t, "--sweep", "3,5,9", "--plot", picture, "--algorithms", "maekawa,raymond")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "maekawa", "raymond", "4(N-1)/N", "N = 9", "</svg>"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("the picture lacks %q", want)
		}
	}
}

// If flags contradict each other, none is ignored silently.
func TestCompareRefusesFlagsThatContradict(t *testing.T) {
	for _, args := range [][]string{
		{"--elections", "--resets"}, {"--markdown", "--json"}, {"--sweep", "3,10", "-n", "5"},
		{"--resets", "-n", "3"}, {"--detectors", "--plot", "x.svg"}, {"--live", "--sweep", "3,5"}, {"--live", "--elections"},
	} {
		status, printed, said := compareWith(t, args...)
		if status != ui.StatusError || printed != "" || strings.Count(said, "\n") != 1 {
			t.Errorf("compare %q: status %d, %q, %q", args, status, printed, said)
		}
	}
}

// One process alone is beside no formula, so it cannot be outside of any.
func TestCompareOneProcess(t *testing.T) {
	status, printed, said := compareWith(t, "-n", "1", "--json")
	if status != 0 || strings.Contains(printed, `"theory": 3`) || !strings.Contains(printed, `"theory": null`) {
		t.Errorf("compare -n 1: status %d, %q, %q", status, printed, said)
	}
}
