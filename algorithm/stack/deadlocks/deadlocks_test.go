package deadlocks

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

var detectors = []*process.Spec{WaitForGraph, EdgeChasing, Diffusion, MaekawaEdgeChasing}

func TestDetectorsConform(t *testing.T) {
	for _, spec := range detectors {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			processtest.Conform(t, spec)
		})
	}
}

func TestDetectorScripts(t *testing.T) {
	for _, spec := range detectors {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}
