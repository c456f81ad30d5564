package consensus

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

var reductions = []*process.Spec{PaxosBully, RaftMutex, RaftElection, TokenConsensus, CentralConsensus, ElectionConsensus}

func TestReductionsConform(t *testing.T) {
	for _, spec := range reductions {
		t.Run(spec.Name, func(t *testing.T) {
			t.Parallel()
			processtest.Conform(t, spec)
		})
	}
}

func TestReductionScripts(t *testing.T) {
	for _, spec := range reductions {
		t.Run(spec.Name, func(t *testing.T) { processtest.Script(t, spec, "testdata/"+spec.Name) })
	}
}
