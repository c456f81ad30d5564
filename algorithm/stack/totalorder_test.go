package stack

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

var totalOrders = []*process.Spec{TotalOrder, TotalOrderSequencer}

func TestTotalOrdersConform(t *testing.T) {
	for _, spec := range totalOrders {
		t.Run(spec.Name, func(t *testing.T) { processtest.Conform(t, spec) })
	}
}

func TestTotalOrderScripts(t *testing.T) {
	for _, spec := range totalOrders {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}
