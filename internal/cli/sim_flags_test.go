package cli

import (
	"encoding/json"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
)

// TestEveryAlgorithmDoesSomething runs each with nothing but its name: messages are
// sent, and no promise is broken.
func TestEveryAlgorithmDoesSomething(t *testing.T) {
	for _, spec := range algorithm.All {
		n := "4"
		if spec.Name == "super-peer" {
			n = "20" // so many that one super-peer is not enough
		}
		status, printed, said := inProcess("sim", "--algorithm", spec.Name, "-n", n, "--json")
		var result struct{ Runs []runView }
		if err := json.Unmarshal([]byte(printed), &result); err != nil || len(result.Runs) != 1 {
			t.Fatalf("%s: status %d, %q, %v", spec.Name, status, said, err)
		}
		sent := uint64(0)
		for _, m := range result.Runs[0].Messages {
			sent += m.Sent
		}
		if sent == 0 || status != 0 {
			t.Errorf("%s: status %d, %d messages, violations %v", spec.Name, status, sent, result.Runs[0].Violations)
		}
	}
}
