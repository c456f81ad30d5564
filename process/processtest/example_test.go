package processtest_test

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

// Spec is the algorithm under test.
var Spec *process.Spec

// The test file of an algorithm needs no more than this.
func Example() {
	conform := func(t *testing.T) { processtest.Conform(t, Spec) }
	scripts := func(t *testing.T) { processtest.Script(t, Spec, "testdata") }
	_, _ = conform, scripts
}
