package replica

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/golden"
)

// TestGoldenFounding: founders of all releases found the same state, that of level 1.
func TestGoldenFounding(t *testing.T) {
	for _, voters := range [][]uint64{{1, 2, 3}, {3, 1, 2}} {
		made, err := proto.MarshalOptions{Deterministic: true}.Marshal(Bootstrap(voters))
		if err != nil {
			t.Fatal(err)
		}
		golden.Same(t, 1, "founding", made)
	}
	restored, err := registry.Decode(Bootstrap([]uint64{1}).GetData())
	if err != nil {
		t.Fatal(err)
	}
	if level, held := restored.Level(); level != 1 || held {
		t.Errorf("a cluster is founded at level %d, held: %v", level, held)
	}
}
