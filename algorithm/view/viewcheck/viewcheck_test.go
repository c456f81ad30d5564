package viewcheck

import (
	"testing"

	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestScripts(t *testing.T) { processtest.Script(t, Over(central.Spec), "testdata") }
