// Package consensus makes consensus, mutual exclusion and elections from each other.
package consensus

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/agreement/byelection"
	"github.com/conclave-io/conclave/algorithm/agreement/bymutex"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	electionbyconsensus "github.com/conclave-io/conclave/algorithm/election/byconsensus"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	mutexbyconsensus "github.com/conclave-io/conclave/algorithm/mutex/byconsensus"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/process"
)

// PaxosBully is Paxos with a bully election that names its leader.
var PaxosBully = over("paxos-bully", "Paxos over a bully election", bully.Spec, paxos.Spec)

// The reductions of consensus, mutual exclusion and elections to each other. Each runs
// above a helper that has what the top lacks.
var (
	RaftMutex         = over("raft-mutex", "Mutual exclusion by Raft", heartbeat.Reliable, raft.Spec, mutexbyconsensus.Spec)
	RaftElection      = over("raft-election", "Election by Raft", raft.Spec, electionbyconsensus.Spec)
	TokenConsensus    = over("suzuki-kasami-consensus", "Consensus by a token", suzukikasami.Spec, bymutex.Spec)
	CentralConsensus  = over("central-consensus", "Consensus by a lock that recovers", heartbeat.Reliable, bully.Spec, central.Spec, bymutex.Spec)
	ElectionConsensus = over("bully-consensus", "Consensus by a bully election and a reliable multicast", bully.Spec, reliable.Spec, byelection.Spec)
)

// over puts the top above its helpers. It survives what the top and all helpers
// survive, and claims no costs.
func over(name, title string, layers ...*process.Spec) *process.Spec {
	s := process.Compose(name, title, layers...)
	s.Claims.Costs = nil
	s.Claims.Survives = slices.DeleteFunc(slices.Clone(s.Claims.Survives), func(v process.Survival) bool {
		return v.Fault == process.Reorder && s.Needs.FIFO || slices.ContainsFunc(layers, func(l *process.Spec) bool { return !l.Survives(v.Fault, "") })
	})
	return s
}
