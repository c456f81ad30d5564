package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// SingleLeader watches that of those who are up at most one takes itself for the
// leader. Few elections promise it: a leader that another has replaced learns so a
// message later, which is why what it does is ordered by its term.
func SingleLeader(w *World) Watcher {
	return Watcher{Name: "single leader", Property: process.SingleLeader, Watch: func(o *Observation) string {
		if o.Kind != Elected {
			return ""
		}
		return w.say(property.SingleLeader(w.scene(), o.Process))
	}}
}
