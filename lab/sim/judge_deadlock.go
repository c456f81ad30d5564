package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// deadlocks returns the judge of a property of detectors. Declarations are compared with
// the processes that were stuck before that step.
func deadlocks(judged process.Property) Judge {
	return func(w *World) Watcher {
		watcher := Watcher{Property: judged}
		if w.cfg.Spec.Waits == nil {
			return watcher
		}
		layer, declares := property.Declares(w.cfg.Spec)
		state, declared := &snapshot{w: w}, process.NewSet(w.config.N)
		var stuck property.Stuck
		watcher.Watch = func(o *Observation) string {
			switch {
			case o.Kind == Entered || o.Kind == Crashed:
				declared.Remove(o.Process)
			case o.Kind == Delivered && o.Message.Layer == layer && o.Message.Type == declares:
				declared.Add(o.Message.Subject)
				if judged == process.NoPhantom {
					return w.say(property.Phantom(w.scene(), o.Process, o.Message.Subject, stuck))
				}
			}
			return ""
		}
		watcher.State = func() string {
			stuck = property.StuckIn(w.cfg.Spec.Waits(state.take()))
			return ""
		}
		if judged == process.DeadlockFound {
			watcher.Quiet = func() string { return w.say(property.DeadlockFound(w.scene(), stuck, declared.Has)) }
		}
		return watcher
	}
}
