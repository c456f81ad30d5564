package sim

import (
	"github.com/conclave-io/conclave/algorithm/election/superpeer"
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// SuperPeerPlace watches superpeer.Place.
func SuperPeerPlace(w *World) Watcher {
	return ofCensus(w, superpeer.Place, (*superpeer.Census).Place)
}

// SuperPeerSpread watches superpeer.Spread.
func SuperPeerSpread(w *World) Watcher {
	return ofCensus(w, superpeer.Spread, (*superpeer.Census).Spread)
}

func ofCensus(w *World, p process.Property, judge func(*superpeer.Census) *property.Violation) Watcher {
	c := superpeer.NewCensus(w.scene())
	return Watcher{
		Name: p.String(), Property: p,
		Watch: func(o *Observation) string {
			if o.Kind == Crashed || o.Kind == Restarted {
				c.Changed()
			}
			return ""
		},
		End: func() string { return w.say(judge(c)) },
	}
}

// SuperPeerCap watches superpeer.Cap.
func SuperPeerCap(w *World) Watcher {
	s := superpeer.NewClients(w.scene())
	return Watcher{Name: superpeer.Cap.String(), Property: superpeer.Cap, Messages: true, Watch: func(o *Observation) string {
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
