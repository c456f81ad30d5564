package clock

import (
	"testing"

	"github.com/conclave-io/conclave/internal/test/vopr/faults"
)

func TestClocks(t *testing.T) {
	c := Clock{Base: 100}
	c.Turn(1000, -faults.MaxDrift)
	for _, reading := range []int64{1100, 1101, 5_000_000_007} {
		at := c.When(reading)
		if c.Read(at) < reading || c.Read(at-1) >= reading {
			t.Errorf("the clock shows %d at %d, and %d just before: not %d", c.Read(at), at, c.Read(at-1), reading)
		}
	}
}
