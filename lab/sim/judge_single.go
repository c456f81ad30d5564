package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// SingleLeader watches that of those who are up at most one takes itself for the
// leader. Few elections promise it: a leader that another has replaced learns so a
// message later, which is why what it does is ordered by its term.
func SingleLeader(w *World) Watcher {
	leads := make([]bool, w.config.N)
	return Watcher{Name: "single leader", Property: process.SingleLeader, Watch: func(o *Observation) string {
		switch o.Kind {
		case Crashed:
			leads[o.Process] = false
		case Elected:
			leads[o.Process] = o.Peer == o.Process
			for q := range process.ID(w.config.N) {
				if q != o.Process && leads[q] && leads[o.Process] {
					return fmt.Sprintf("%s takes itself for the leader, and so does %s", w.config.Text(o.Process), w.config.Text(q))
				}
			}
		}
		return ""
	}}
}
