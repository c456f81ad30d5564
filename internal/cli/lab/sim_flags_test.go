package lab_test

import (
	"encoding/json"
	"testing"

	"github.com/conclave-io/conclave/algorithm"
	"github.com/conclave-io/conclave/internal/cli/clitest"
)

// outcome is what these tests read of the result of a run.
type outcome struct {
	Messages         []struct{ Sent uint64 }
	MessagesPerEntry *float64 `json:"messages_per_entry"`
	Violations       []any
}

// TestEveryAlgorithmDoesSomething runs each algorithm by its name, without other flags:
// messages are sent, and no promise is broken.
func TestEveryAlgorithmDoesSomething(t *testing.T) {
	for _, spec := range algorithm.All {
		n := "4"
		if spec.Name == "super-peer" {
			n = "20" // so many that one super-peer is not enough
		}
		status, printed, said := clitest.Run("sim", "--algorithm", spec.Name, "-n", n, "--json")
		var result struct{ Runs []outcome }
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

// TestAveragesAreThoseOfTheory: without further flags, sim prints the costs of the Specs.
// The first requests and the order of the requesters do not affect them.
func TestAveragesAreThoseOfTheory(t *testing.T) {
	for _, c := range []struct {
		algorithm, regime string
		messages, slack   float64
	}{
		{"ricart-agrawala", "saturated", 18, 0}, {"lamport", "saturated", 27, 0}, {"suzuki-kasami", "saturated", 10, 0},
		{"raymond", "saturated", 3.6, 0}, {"maekawa", "saturated", 16.8, 0.1}, {"token-ring", "saturated", 1, 0},
		{"naimi-trehel", "idle", 2.829, 0.15}, {"singhal", "idle", 5.4, 0.2},
	} {
		status, printed, said := clitest.Run("sim", "-a", c.algorithm, "-n", "10", "--regime", c.regime, "--json")
		var result struct{ Runs []outcome }
		if err := json.Unmarshal([]byte(printed), &result); err != nil || status != 0 || len(result.Runs) != 1 {
			t.Fatalf("%s: status %d, %q, %v", c.algorithm, status, said, err)
		}
		if got := *result.Runs[0].MessagesPerEntry; got < c.messages-c.slack-1e-9 || got > c.messages+c.slack+1e-9 {
			t.Errorf("%s, %s: %v messages per entry, theory %v", c.algorithm, c.regime, got, c.messages)
		}
	}
}
