package lab_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestDetectorsAreCurrent fails when docs/detectors.md is not what the simulator
// measures; "make detectors" writes it.
func TestDetectorsAreCurrent(t *testing.T) {
	written, err := os.ReadFile("../../../docs/detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	status, measured, said := compareWith(t, "--detectors", "-n", "10", "--markdown")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	if measured != string(written) {
		t.Error("docs/detectors.md is not what the simulator measures now; run make detectors")
	}
	if strings.Contains(measured, "(!)") {
		t.Error("a figure in docs/detectors.md is not what theory says")
	}
}

func TestDetectorsAsJSON(t *testing.T) {
	status, printed, said := compareWith(t, "--detectors", "-n", "3", "--json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(printed), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		for _, key := range []string{"algorithm", "n", "regime", "metric", "theory", "bounds", "measured"} {
			if _, has := r[key]; !has {
				t.Fatalf("a row is %v, it lacks %s", r, key)
			}
		}
		if r["metric"] == "messages_per_period" && (r["theory"] != 6.0 || r["measured"] != 6.0) {
			t.Errorf("three processes cost %v", r)
		}
	}
	for _, want := range []string{`"swim"`, `"phi-accrual"`, `"phi=8"`, `"beat-timeout=13"`, `"false_suspicions"`, `"detection_time"`} {
		if !strings.Contains(printed, want) {
			t.Errorf("there is no %s", want)
		}
	}
}
