package paxos

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) {
	for _, spec := range []*process.Spec{Spec, Proposers} {
		t.Run(spec.Name, func(t *testing.T) { processtest.Conform(t, spec) })
	}
}

func TestScripts(t *testing.T) {
	for _, spec := range []*process.Spec{Spec, Proposers} {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}
