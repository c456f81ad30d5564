// Package deadlocks puts deadlock detectors above the processes that can deadlock.
package deadlocks

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/algorithm/deadlock/diffusion"
	"github.com/conclave-io/conclave/algorithm/deadlock/edgechasing"
	"github.com/conclave-io/conclave/algorithm/deadlock/requests"
	"github.com/conclave-io/conclave/algorithm/deadlock/waitforgraph"
	"github.com/conclave-io/conclave/process"
)

// The deadlock detectors, each above processes that wait for each other.
var (
	WaitForGraph = detecting("wait-for-graph", "Wait-for graph with an elected maintainer: deadlocks of the AND model", requests.And, waitforgraph.Spec)
	Diffusion    = detecting("diffusion", "Diffusion: deadlocks of the OR model", requests.Or, diffusion.Spec)
	EdgeChasing  = detecting("edge-chasing", "Edge chasing: deadlocks of the AND model", requests.And, edgechasing.Spec)
)

// detecting puts a deadlock detector above the layer that can deadlock.
func detecting(name, title string, waits, detector *process.Spec) *process.Spec {
	s := process.Compose(name, title, waits, detector)
	s.Waits = requests.Waits
	return s
}

// MaekawaEdgeChasing is the voting of the slides, with a detector that finds and breaks
// its deadlocks.
var MaekawaEdgeChasing = maekawaEdgeChasing()

func maekawaEdgeChasing() *process.Spec {
	s := process.Compose("maekawa-edge-chasing", "Maekawa's voting as on the slides, with edge chasing", maekawaslides.Withdrawing, edgechasing.Spec)
	s.Documents = append(slices.Clone(maekawaslides.Spec.Documents), edgechasing.Spec.Documents...)
	s.Claims = process.Claims{
		Properties: []process.Claim{
			{Property: process.MutualExclusion},
			{Property: process.FencesGrow},
			{Property: process.Progress, Mode: deadlock.Break},
		},
		Survives: edgechasing.Spec.Claims.Survives,
	}
	return s
}
