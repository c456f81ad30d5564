package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Convergence watches that states stay legitimate once they are, until the next fault,
// and that they are legitimate at the end. A state is legitimate if the invariant of
// the Spec holds. It does not judge a Spec without an invariant.
func Convergence(w *World) Watcher {
	watcher := Watcher{Property: process.Convergence}
	if w.cfg.Spec.Invariant == nil {
		return watcher
	}
	s := &snapshot{w: w}
	legitimate, since := false, process.Duration(0)
	watcher.State = func() string {
		if w.disturbed != since {
			legitimate, since = false, w.disturbed
		}
		text := w.cfg.Spec.Invariant.Wrong(s.take())
		if text != "" && legitimate && w.disturbed < w.now {
			return w.say(property.Left(text))
		}
		legitimate = text == ""
		return ""
	}
	watcher.End = func() string {
		if text := w.cfg.Spec.Invariant.Wrong(s.take()); text != "" {
			return w.say(property.Illegitimate(text))
		}
		return ""
	}
	return watcher
}
