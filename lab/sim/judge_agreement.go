package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// ValueAgreement watches that no two processes decide differently.
func ValueAgreement(w *World) Watcher { return decisions(w, process.ValueAgreement) }

// ValueValidity watches that every decided value was proposed.
func ValueValidity(w *World) Watcher { return decisions(w, process.ValueValidity) }

// DecideOnce watches that no process decides twice without a crash in between.
func DecideOnce(w *World) Watcher { return decisions(w, process.DecideOnce) }

// Decision watches that every live process that has proposed has an answer when no
// event is left.
func Decision(w *World) Watcher { return decisions(w, process.Decision) }

// Unanimity watches that a value that all correct processes propose is decided.
func Unanimity(w *World) Watcher { return decisions(w, process.Unanimity) }

// VectorValidity watches that the decision for each process is what that process
// proposed, if it is correct.
func VectorValidity(w *World) Watcher { return decisions(w, process.VectorValidity) }

// decisions is the watcher of a property of consensus.
func decisions(w *World, judged process.Property) Watcher {
	d := property.NewDecisions(w.cfg.Spec, w.config, w.cfg.Traitors...)
	watch := func(o *Observation) string {
		switch o.Kind {
		case Proposed:
			d.Propose(o.Process, o.Value)
		case Crashed:
			d.Start(o.Process)
		case Decided:
			for _, v := range d.Decide(w.scene(), o.Process, o.Value) {
				if v != nil && v.Property == judged {
					return w.say(v)
				}
			}
		}
		return ""
	}
	end := func() string {
		if judged != process.Decision || w.reason != Quiet {
			return ""
		}
		return w.say(property.Decision(w.scene(), d.Waits))
	}
	return Watcher{Name: judged.String(), Property: judged, Watch: watch, End: end}
}
