package simtest_test

import (
	"fmt"
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/sim/simtest"
)

func TestCentral(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { simtest.Schedules(t, central.Spec, n) })
	}
}
