// Package stack composes algorithms into stacks that recover from crashes without help.
//
// # Problem and idea
//
// A central coordinator and a token ring continue after a crash if they are told which
// process has failed and which one leads. Alone they leave that to their host: a
// simulator answers as an oracle, without messages. Here machines do it, at the cost of
// their messages: the lock runs above a bully election, and both run above a reliable
// failure detector.
//
//	lock      Fail of the coordinator, or of a process that may have had the token:
//	          call an election. Elected: take over.
//	bully     Fail: do not ask crashed processes. The winner's term is the epoch of
//	          the takeover.
//	reliable  silence for longer than a live process can be silent: Fail.
//	          A higher incarnation: Rejoin.
//
// SWIM can replace the reliable detector: it suspects, gives the suspect time to
// object, and then reports Fail. That costs two messages per process and period instead
// of N-1, and the time to object. An election can run above any detector: a suspicion
// is enough to call one, and a wrong suspicion costs only an election. A lock cannot:
// it makes a token, or forgets a holder, only on Fail. Above heartbeats that only
// suspect, or phi-accrual, the takeover would wait for the answer of a crashed process.
//
// Each stack is an algorithm with its own name rather than an option of the lock,
// because it makes a different promise: it needs bounded delays and FIFO links, which
// the lock alone does not need. A user should ask for that explicitly. The options of
// all layers are options of the stack.
//
// # What it does not survive
//
// The detector is right only as long as delays keep their bound and no message is lost.
// A live process that is declared failed may still be inside when the next one enters;
// then the fence of the later one stops it. Restarts need a disk that keeps rounds and
// promises, and at least one process that stays up. If all participants are down at
// once, the first to restart do not know the last round, and reuse its terms and
// fences.
package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/conclave-io/conclave/algorithm/agreement/byelection"
	"github.com/conclave-io/conclave/algorithm/agreement/bymutex"
	"github.com/conclave-io/conclave/algorithm/agreement/paxos"
	"github.com/conclave-io/conclave/algorithm/agreement/raft"
	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/algorithm/deadlock/diffusion"
	"github.com/conclave-io/conclave/algorithm/deadlock/edgechasing"
	"github.com/conclave-io/conclave/algorithm/deadlock/requests"
	"github.com/conclave-io/conclave/algorithm/deadlock/waitforgraph"
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	electionbyconsensus "github.com/conclave-io/conclave/algorithm/election/byconsensus"
	"github.com/conclave-io/conclave/algorithm/multicast/reliable"
	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	mutexbyconsensus "github.com/conclave-io/conclave/algorithm/mutex/byconsensus"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/algorithm/mutex/totalorder"
	"github.com/conclave-io/conclave/process"
)

// CentralRecovering is a central coordinator that is replaced when it crashes.
var CentralRecovering = recovering("central-recovering", "Central coordinator that is replaced when it crashes", central.Spec, heartbeat.Reliable)

// TokenRingRecovering is a token ring that replaces a lost token.
var TokenRingRecovering = recovering("token-ring-recovering", "Token ring that replaces a lost token", tokenring.Spec, heartbeat.Reliable)

// CentralSwim is CentralRecovering with SWIM as its detector.
var CentralSwim = recovering("central-swim", "Central coordinator that is replaced when SWIM finds it failed", central.Spec, swim.Spec)

// TokenRingSwim is TokenRingRecovering with SWIM as its detector.
var TokenRingSwim = recovering("token-ring-swim", "Token ring that replaces a token that SWIM finds lost", tokenring.Spec, swim.Spec)

// The election above each of the detectors: a leader that crashes is replaced without a
// request. They are not in the list of algorithms, because they add nothing to their
// layers. Names such as swim+bully also refer to them.
var (
	BullyHeartbeat = watchful("bully-heartbeat", "Bully election over heartbeats", heartbeat.Spec)
	BullyReliable  = watchful("bully-reliable", "Bully election over reliable heartbeats", heartbeat.Reliable)
	BullyPhi       = watchful("bully-phi-accrual", "Bully election over the phi-accrual detector", phiaccrual.Spec)
	BullySwim      = watchful("bully-swim", "Bully election over SWIM", swim.Spec)
)

// All lists the stacks.
var All = []*process.Spec{
	CentralRecovering, TokenRingRecovering, CentralSwim, TokenRingSwim,
	BullyHeartbeat, BullyReliable, BullyPhi, BullySwim,
}

// recovering puts a lock above the election and the detector that it needs. Reports of
// the detector are facts only under the assumptions of the reliable one.
func recovering(name, title string, lock, detector *process.Spec) *process.Spec {
	s := process.Compose(name, title, detector, bully.Spec, lock)
	s.Needs.FIFO, s.Needs.Reliable, s.Needs.Synchrony = true, true, true
	s.Claims.Survives = nil
	for _, v := range lock.Claims.Survives {
		switch v.Fault {
		case process.Reorder: // the detector needs FIFO links
			continue
		case process.AmnesiaRestart:
			v.How += "; a process that took part before the crash must be up"
		}
		s.Claims.Survives = append(s.Claims.Survives, v)
	}
	return s
}

// watchful puts the election above a detector. Heartbeats never end, and there is no
// formula for the cost when several processes suspect at once.
func watchful(name, title string, detector *process.Spec) *process.Spec {
	s := process.Compose(name, title, detector, bully.Spec)
	s.Claims.Costs = nil
	s.Claims.Properties = slices.DeleteFunc(slices.Clone(s.Claims.Properties), func(c process.Claim) bool {
		return c.Property == process.Quiescence
	})
	if s.Needs.FIFO {
		s.Claims.Survives = slices.DeleteFunc(slices.Clone(s.Claims.Survives), func(v process.Survival) bool {
			return v.Fault == process.Reorder
		})
	}
	return s
}

// Over puts an algorithm above others, bottom first: a recorder of global states or a
// logical clock that carries its messages, a detector, an election. The name of the
// stack is all names joined by plus signs.
//
// It promises what the top promises, and what the carriers below it promise; and it
// survives what all of them survive.
func Over(top *process.Spec, below ...*process.Spec) (*process.Spec, error) {
	var names, titles []string
	for _, l := range below {
		if !l.Carrier && l.Family != process.Detector && l.Family != process.Election {
			return nil, fmt.Errorf("%s cannot be a lower layer: it is neither a carrier nor a detector nor an election", l.Name)
		}
		names, titles = append(names, l.Name), append(titles, l.Title)
	}
	names = append(names, top.Name)
	slices.Reverse(titles)
	s := process.Compose(strings.Join(names, "+"), top.Title+" over "+strings.Join(titles, " over "), append(slices.Clone(below), top)...)
	s.Claims.Properties = slices.Clone(top.Claims.Properties)
	if !slices.ContainsFunc(below, func(l *process.Spec) bool { return l.Carrier }) {
		s.Waits = top.Waits // it does not look into carried messages
	}
	if slices.ContainsFunc(below, speaks) {
		disclaimCauses(s)
	}
	s.Claims.Survives = slices.Clone(top.Claims.Survives)
	for _, l := range below {
		if l.Carrier {
			s.Claims.Properties = append(s.Claims.Properties, l.Claims.Properties...)
		}
		s.Claims.Survives = slices.DeleteFunc(s.Claims.Survives, func(v process.Survival) bool {
			return !l.Survives(v.Fault, "") || v.Fault == process.Reorder && s.Needs.FIFO
		})
	}
	return s, nil
}

// speaks reports whether a layer sends messages of its own, in addition to those that
// it carries.
func speaks(l *process.Spec) bool { return l.Family != process.ClockSync }

// disclaimCauses withdraws the claim that entries follow happened-before. The top sees
// only its own messages. Suppose one process asks to enter, and then one of its markers
// or heartbeats reaches another, which asks because of it: no clock of the top shows
// that.
func disclaimCauses(s *process.Spec) {
	for i := range s.Claims.Properties {
		if c := &s.Claims.Properties[i]; c.Property == process.OrderHappenedBefore {
			c.Fails, c.When = true, "messages of the layers below also count for happened-before, but the top does not see them"
		}
	}
}

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

// TotalOrder is mutual exclusion above totally ordered multicast by Lamport's clocks.
// With two processes, the one that receives a multicast need not wait for another
// process.
var TotalOrder = ordered("total-order", "Mutual exclusion over totally ordered multicast", totallamport.Spec, "N >= 2",
	&process.Formula{Text: "min(2, N-1)", Eval: func(p process.Params) float64 { return float64(min(2, p.N-1)) }},
	process.Claim{Property: process.OrderHappenedBefore},
	process.Claim{
		Property: process.BoundedBypass, When: "counted from the request",
		Bound: process.PerOther("2(N-1)", 2),
	})

// TotalOrderSequencer is the same queue above a sequencer.
var TotalOrderSequencer = ordered("total-order-sequencer", "Mutual exclusion over a sequencer", totalsequencer.Spec,
	"the client is not the sequencer, and N >= 2",
	process.Constant("2", 2))

// ordered puts the queue above a total order. It survives what the order survives: the
// queue itself only needs to be told of crashes.
func ordered(name, title string, order *process.Spec, when string, others *process.Formula, more ...process.Claim) *process.Spec {
	s := process.Compose(name, title, order, totalorder.Spec)
	i := slices.IndexFunc(order.Claims.Costs, func(c process.Cost) bool {
		return c.Metric == process.MessagesPerMulticast && c.Exact != nil
	})
	s.Claims.Properties = slices.Concat(s.Claims.Properties, more)
	s.Claims.Costs = totalorder.Costs(when, order.Claims.Costs[i].Exact, others)
	s.Claims.Survives = order.Claims.Survives
	return s
}
