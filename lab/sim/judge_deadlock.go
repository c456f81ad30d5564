package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// NoPhantom watches that every declared deadlock exists.
func NoPhantom(w *World) Watcher { return deadlocks(w, process.NoPhantom) }

// DeadlockFound watches that no deadlock is overlooked.
func DeadlockFound(w *World) Watcher { return deadlocks(w, process.DeadlockFound) }

// deadlocks is the watcher of a property of detectors. Declarations are compared with
// the processes that were stuck before that step.
func deadlocks(w *World, judged process.Property) Watcher {
	watcher := Watcher{Name: judged.String(), Property: judged, Watch: func(*Observation) string { return "" }}
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
			if v := property.Phantom(w.scene(), o.Process, o.Message.Subject, stuck); v != nil && judged == process.NoPhantom {
				return w.say(v)
			}
		}
		return ""
	}
	watcher.State = func() string {
		stuck = property.StuckIn(w.cfg.Spec.Waits(state.take()))
		return ""
	}
	if judged == process.DeadlockFound {
		watcher.End = func() string {
			if w.reason != Quiet {
				return ""
			}
			return w.say(property.DeadlockFound(w.scene(), stuck, declared.Has))
		}
	}
	return watcher
}
