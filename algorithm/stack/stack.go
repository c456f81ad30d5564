// Package stack composes algorithms that recover from crashes by themselves.
//
// # Problem and idea
//
// A central coordinator and a token ring go on after a crash if somebody tells
// them who has failed and who leads from now on. Alone they leave that to whoever
// runs them: a simulator answers as an oracle, free of charge. Here it is done by
// machines, at the price of their messages: the lock stands over a bully election,
// and both over a reliable failure detector.
//
//	lock      Fail of the coordinator, or of whoever may have had the token:
//	          call an election. Elected: take over.
//	bully     Fail: do not ask the dead. The winner's term is the epoch of the
//	          takeover.
//	reliable  silence for longer than a live process can be silent: Fail.
//	          A higher incarnation: Rejoin.
//
// SWIM can stand in the place of the reliable detector: it suspects, gives the
// suspect time to object, and then says Fail. That costs two messages per process
// and period instead of N-1, and the time to object. An election stands over any
// detector, since a suspicion is enough to call one, and one that was wrong costs
// an election. A lock does not: it makes a token, or forgets a holder, only on
// Fail. Over heartbeats that only suspect, or phi-accrual, the takeover would wait
// for the answer of the dead.
//
// Each is an algorithm with a name of its own rather than an option of the lock,
// because it is a different promise: it needs bounded delays and FIFO links, which
// the lock alone does not, and nobody should get them without having asked. The
// options of all layers are options of the whole.
//
// # What it does not survive
//
// The detector is right only as long as delays keep their bound and nothing is
// lost. A live process that is declared failed may still be inside when the next
// one enters; then the fence of the later one stops it. Restarts need a disk that
// keeps rounds and promises, and somebody who stays up: if everyone who took part
// is down at once, those who come back first do not know the last round, and its
// terms and fences are given again.
package stack

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/detector/phiaccrual"
	"github.com/conclave-io/conclave/algorithm/detector/swim"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
)

// CentralRecovering is a central coordinator that is replaced when it crashes.
var CentralRecovering = recovering("central-recovering", "Central coordinator that is replaced when it crashes", central.Spec, heartbeat.Reliable)

// TokenRingRecovering is a token ring that makes a lost token anew.
var TokenRingRecovering = recovering("token-ring-recovering", "Token ring that makes a lost token anew", tokenring.Spec, heartbeat.Reliable)

// CentralSwim is CentralRecovering with SWIM as its detector.
var CentralSwim = recovering("central-swim", "Central coordinator that is replaced when SWIM finds it failed", central.Spec, swim.Spec)

// TokenRingSwim is TokenRingRecovering with SWIM as its detector.
var TokenRingSwim = recovering("token-ring-swim", "Token ring that makes a token anew that SWIM finds lost", tokenring.Spec, swim.Spec)

// The election over each of the detectors: a leader that crashes is replaced
// without anybody having to ask. They are not in the list of algorithms, as they
// add nothing to their layers; swim+bully and its like name them too.
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

// recovering puts a lock over the election and the detector that it needs. What
// the detector says is a fact only under the assumptions of the reliable one.
func recovering(name, title string, lock, detector *process.Spec) *process.Spec {
	s := process.Compose(name, title, detector, bully.Spec, lock)
	s.Needs.FIFO, s.Needs.Reliable, s.Needs.Synchrony = true, true, true
	s.Claims.Survives = nil
	for _, v := range lock.Claims.Survives {
		switch v.Fault {
		case process.Reorder: // the detector needs FIFO links
			continue
		case process.AmnesiaRestart:
			v.How += "; somebody who took part before the crash must be up"
		}
		s.Claims.Survives = append(s.Claims.Survives, v)
	}
	return s
}

// watchful puts the election over a detector. Heartbeats never end, and what
// several processes that suspect at once cost together no formula says.
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
