package ordered

import (
	"testing"

	"github.com/conclave-io/conclave/process/processtest"
)

func TestTotalOrdersConform(t *testing.T) {
	for _, spec := range All {
		t.Run(spec.Name, func(t *testing.T) { processtest.Conform(t, spec) })
	}
}

func TestTotalOrderScripts(t *testing.T) {
	for _, spec := range All {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}
