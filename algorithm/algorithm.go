// Package algorithm is the list of all algorithms. The command line, the
// documentation, the tables and the tests are generated from it: an algorithm
// that is not here does not exist.
package algorithm

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/broken/changrobertsprinted"
	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/broken/singhalprinted"
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/election/byload"
	"github.com/conclave-io/conclave/algorithm/election/changroberts"
	"github.com/conclave-io/conclave/algorithm/election/ringactivelist"
	"github.com/conclave-io/conclave/algorithm/election/ringlist"
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/algorithm/multicast/causal"
	"github.com/conclave-io/conclave/algorithm/multicast/fifo"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/centralclock"
	"github.com/conclave-io/conclave/algorithm/mutex/kricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/algorithm/mutex/maekawa"
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/algorithm/mutex/singhal"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/stack"
	"github.com/conclave-io/conclave/process"
)

// All lists every algorithm, in the order in which they are taught. Nobody
// changes it.
var All = []*process.Spec{
	central.Spec,
	centralclock.Spec,
	tokenring.Spec,
	lamport.Spec,
	ricartagrawala.Spec,
	ricartagrawalatoken.Spec,
	suzukikasami.Spec,
	raymond.Spec,
	singhal.Spec,
	maekawa.Spec,
	majority.Spec,
	kricartagrawala.Spec,

	bully.Spec,
	changroberts.Spec,
	changroberts.Repaired,
	ringlist.Spec,
	ringactivelist.Spec,
	byload.List,
	byload.Ring,
	byload.Bully,
	superpeer.Spec,

	heartbeat.Spec,
	heartbeat.Reliable,
	phiaccrual.Spec,
	swim.Spec,

	reliable.Spec,
	fifo.Spec,
	causal.Spec,
	totallamport.Spec,
	totalsequencer.Spec,

	stack.CentralRecovering,
	stack.TokenRingRecovering,
	stack.CentralSwim,
	stack.TokenRingSwim,
	stack.BullyHeartbeat,
	stack.BullyReliable,
	stack.BullyPhi,
	stack.BullySwim,
	stack.TotalOrder,
	stack.TotalOrderSequencer,
	singhalprinted.Spec,
	maekawaslides.Spec,
	changrobertsprinted.Spec,
}

// Find returns the algorithm with the given name, or nil if there is none.
func Find(name string) *process.Spec {
	i := slices.IndexFunc(All, func(s *process.Spec) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return All[i]
}
