package sim

import (
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// ofCensus returns the judge of a property of super-peers that a census decides.
func ofCensus(p process.Property, judge func(*superpeer.Census) *property.Violation) Judge {
	return func(w *World) Watcher {
		c := superpeer.NewCensus(w.scene())
		watch := func(o *Observation) string {
			if o.Kind == Crashed || o.Kind == Restarted {
				c.Changed()
			}
			return ""
		}
		return Watcher{Property: p, Watch: watch, End: func() string { return w.say(judge(c)) }}
	}
}

// superPeerCap watches superpeer.Cap.
func superPeerCap(w *World) Watcher {
	s := superpeer.NewClients(w.scene())
	return Watcher{Property: superpeer.Cap, Messages: true, Watch: func(o *Observation) string {
		switch o.Kind {
		case Crashed:
			s.Crashed(o.Process)
		case Sent:
			return w.say(s.Sent(o.Message))
		case Received:
			s.Received(o.Message)
		}
		return ""
	}}
}
