package lab_test

import (
	"encoding/json"
	"os"
	"testing"
)

// TestElectionsAreCurrent fails when docs/elections.md is not what the simulator
// measures; "make elections" writes it.
func TestElectionsAreCurrent(t *testing.T) {
	written, err := os.ReadFile("../../../docs/elections.md")
	if err != nil {
		t.Fatal(err)
	}
	status, measured, said := compareWith(t, "--elections", "-n", "8", "--markdown")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	if measured != string(written) {
		t.Error("docs/elections.md is not what the simulator measures now; run make elections")
	}
}

func TestCompareElectionsAsJSON(t *testing.T) {
	status, printed, said := compareWith(t, "--elections", "-n", "5", "--algorithms", "bully,ring-list", "--json")
	if status != 0 {
		t.Fatalf("status %d: %s", status, said)
	}
	var rows []struct {
		Algorithm, Regime, Metric string
		N                         int
		Theory, Measured          float64
	}
	if err := json.Unmarshal([]byte(printed), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2*3*2 {
		t.Errorf("%d rows, want messages and time in three regimes for each: %s", len(rows), printed)
	}
	for _, r := range rows {
		if r.Algorithm == "bully" && r.Regime == "worst" && r.Metric == "messages" && (r.Measured != 19 || r.Theory != 19) {
			t.Errorf("the worst election of 5 by bully: %+v, want 5*5-5-1", r)
		}
	}
}
