package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Atomicity watches that no process commits a transaction that another aborts.
func Atomicity(w *World) Watcher { return transactions(w, process.Atomicity) }

// StableDecision watches that no process changes its decision.
func StableDecision(w *World) Watcher { return transactions(w, process.StableDecision) }

// UnanimousCommit watches that no process commits before all have voted yes.
func UnanimousCommit(w *World) Watcher { return transactions(w, process.UnanimousCommit) }

// NonTriviality watches that no process aborts without a reason. It judges runs without
// faults in which all vote before a timer expires, and no timer expires while a message
// is in flight.
func NonTriviality(w *World) Watcher { return transactions(w, process.NonTriviality) }

// RepairTermination watches that every process that has voted has decided when no event
// is left and all processes are up.
func RepairTermination(w *World) Watcher { return transactions(w, process.RepairTermination) }

// NonBlocking watches the same for live processes, although others are down.
func NonBlocking(w *World) Watcher { return transactions(w, process.NonBlocking) }

// transactions is the watcher of a property of atomic commitment.
func transactions(w *World, judged process.Property) Watcher {
	votes, late := property.NewVotes(w.config), false // late: a process voted after a timer expired
	say := func(all []*property.Violation) string {
		for _, v := range all {
			if v != nil && v.Property == judged {
				return w.say(v)
			}
		}
		return ""
	}
	watch := func(o *Observation) string {
		switch o.Kind {
		case Proposed:
			votes.Cast(o.Process, o.Value)
			late = late || w.fired
		case Decided:
			return say(votes.Decide(w.scene(), o.Process, o.Value, w.faults || w.hasty || late))
		}
		return ""
	}
	end := func() string {
		if w.reason != Quiet {
			return ""
		}
		return say(property.TransactionEnds(w.scene(), votes))
	}
	return Watcher{Name: judged.String(), Property: judged, Watch: watch, End: end}
}
