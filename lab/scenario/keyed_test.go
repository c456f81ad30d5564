package scenario_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/lab/scenario"
)

// happened returns what happened in a run, without the numbers of records.
func happened(t *testing.T, text string) map[string]int {
	t.Helper()
	s, err := scenario.Parse("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	full := records{}
	if _, err := s.Run(&full); err != nil {
		t.Fatal(err)
	}
	if len(full) < 500 {
		t.Fatalf("only %d records", len(full))
	}
	seen := map[string]int{}
	for i := range full {
		r := full[i]
		r.ID, r.Cause = 0, 0
		seen[r.String()]++
	}
	return seen
}

// With keyed draws, a change affects only its consequences. The example is a duplicated
// heartbeat in a run without crashes.
func TestKeyedDraws(t *testing.T) {
	const text = "algorithm: heartbeat\nn: 4\nlinks: {delay: {uniform: [0.2, 1]}, drop: 0.01, fifo: false}\nlimit: {time: 300}\nseed: 3\ndraws: %s\n"
	changed := map[string]int{}
	for _, draws := range []string{"shared", "keyed"} {
		plain := fmt.Sprintf(text, draws)
		before, after := happened(t, plain), happened(t, plain+"faults: [{at: 10, repeat: any, from: 1, to: 2}]\n")
		for what, n := range before {
			changed[draws] += max(0, n-after[what])
		}
	}
	if changed["keyed"] > 3 || changed["shared"] < 100 {
		t.Errorf("one more message changes %v records", changed)
	}
	again := fmt.Sprintf(text, "keyed")
	if a, b := happened(t, again), happened(t, again); len(a) != len(b) {
		t.Error("the same keyed run comes out otherwise")
	}
	if _, err := scenario.Parse("test", []byte("algorithm: lamport\nn: 3\ndraws: even\n")); err == nil {
		t.Error("draws: even is accepted")
	}
}
