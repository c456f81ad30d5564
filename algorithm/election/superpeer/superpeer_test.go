package superpeer_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, superpeer.Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, superpeer.Spec, "testdata") }

// The nearest k on a logarithmic scale. The middle between 2^k and 2^(k+1) is their
// geometric mean.
func TestPrefix(t *testing.T) {
	for wanted, want := range map[int]int{0: 0, 1: 0, 2: 1, 3: 2, 5: 2, 6: 3, 8: 3, 11: 3, 12: 4, 1000: 10, 1448: 10, 1449: 11} {
		if got := superpeer.Prefix(wanted); got != want {
			t.Errorf("Prefix(%d) is %d, want %d", wanted, got, want)
		}
	}
}
