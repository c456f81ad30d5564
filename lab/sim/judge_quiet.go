package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Quiescence watches that no message circulates forever: that none is sent a very long
// time after the last command, fault, request, entry or exit. The messages of a
// detector do not count.
func Quiescence(w *World) Watcher {
	last := process.Duration(0)
	for i := range w.cfg.Workload.Commands {
		last = max(last, w.cfg.Workload.Commands[i].At)
	}
	for i := range w.cfg.Faults {
		last = max(last, w.cfg.Faults[i].At+w.cfg.Faults[i].For)
	}
	watch := func(o *Observation) string {
		switch o.Kind {
		case Requested, Entered, Left, Withdrawn, Revoked, Crashed, Restarted:
			last = max(last, w.now)
		case Sent:
			m := w.cfg.Spec.Message(o.Message.Layer, o.Message.Type)
			if m.Class != process.Heartbeat && w.now-last > w.stallTime() {
				return fmt.Sprintf("%s still sends %s, %d ns after the last thing that anybody asked for",
					w.config.Text(o.Process), m.Name, w.now-last)
			}
		}
		return ""
	}
	return Watcher{Property: process.Quiescence, Messages: true, Watch: watch}
}
