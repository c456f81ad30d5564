package algorithm_test

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm"
)

// Names joined by plus signs are stacks, bottom first.
func TestFindStack(t *testing.T) {
	spec := algorithm.Find("vector-clock+chandy-lamport+token-ring")
	if spec == nil || spec.Depth() != 3 || spec.LayerText() != "token-ring over chandy-lamport over vector-clock" {
		t.Fatalf("the stack is %+v", spec)
	}
	for _, name := range []string{
		"token-ring+central", "chandy-lamport+chandy-lamport+central", "chandy-lamport+", "+central", "+", "chandy-lamport+centrall",
		"token-ring-recovering+central", "views+", "views+bully", "views+token-ring-recovering", "views+views+central",
	} {
		if algorithm.Find(name) != nil {
			t.Errorf("%q is found", name)
		}
	}
}
