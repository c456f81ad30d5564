// Package recovering has locks and elections that recover from crashes without help.
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
// Each stack has its own name rather than being an option of the lock, because it needs
// bounded delays and FIFO links, which the lock alone does not need. A user should ask
// for that explicitly.
//
// # What it does not survive
//
// The detector is right only as long as delays keep their bound and no message is lost.
// A live process that is declared failed may still be inside when the next one enters;
// then the fence of the later one stops it. Restarts need a disk that keeps rounds and
// promises, and at least one process that stays up. If all participants are down at
// once, the first to restart do not know the last round, and reuse its terms and
// fences.
package recovering

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
