package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// decisions returns the judge of a property of consensus.
func decisions(judged process.Property) Judge {
	return func(w *World) Watcher {
		d := property.NewDecisions(w.cfg.Spec, w.config, w.cfg.Traitors...)
		watcher := Watcher{Property: judged, Watch: func(o *Observation) string {
			switch o.Kind {
			case Proposed:
				d.Propose(o.Process, o.Value)
			case Crashed:
				d.Start(o.Process)
			case Decided:
				return w.sayOf(judged, d.Decide(w.scene(), o.Process, o.Value))
			}
			return ""
		}}
		if judged == process.Decision {
			watcher.Quiet = func() string { return w.say(property.Decision(w.scene(), d.Waits)) }
		}
		return watcher
	}
}

// transactions returns the judge of a property of atomic commitment. That of
// NonTriviality judges runs without faults in which all vote before a timer expires, and
// no timer expires while a message is in flight.
func transactions(judged process.Property) Judge {
	return func(w *World) Watcher {
		votes, late := property.NewVotes(w.config), false // late: a process voted after a timer expired
		watch := func(o *Observation) string {
			switch o.Kind {
			case Proposed:
				votes.Cast(o.Process, o.Value)
				late = late || w.fired
			case Decided:
				return w.sayOf(judged, votes.Decide(w.scene(), o.Process, o.Value, w.faults || w.hasty || late))
			}
			return ""
		}
		quiet := func() string { return w.sayOf(judged, property.TransactionEnds(w.scene(), votes)) }
		return Watcher{Property: judged, Watch: watch, Quiet: quiet}
	}
}
