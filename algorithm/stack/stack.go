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
	"github.com/conclave-io/conclave/algorithm/detector/heartbeat"
	"github.com/conclave-io/conclave/algorithm/election/bully"
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
)

// CentralRecovering is a central coordinator that is replaced when it crashes.
var CentralRecovering = recovering("central-recovering", "Central coordinator that is replaced when it crashes", central.Spec)

// TokenRingRecovering is a token ring that makes a lost token anew.
var TokenRingRecovering = recovering("token-ring-recovering", "Token ring that makes a lost token anew", tokenring.Spec)

// recovering puts a lock over the election and the detector that it needs.
func recovering(name, title string, lock *process.Spec) *process.Spec {
	s := process.Compose(name, title, heartbeat.Reliable, bully.Spec, lock)
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
