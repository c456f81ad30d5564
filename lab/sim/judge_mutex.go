package sim

import (
	"fmt"
	"strings"

	"github.com/conclave-io/conclave/process"
)

// AtMost watches that at most k clients are inside at once. With k = 1 this is
// mutual exclusion.
func AtMost(k int) Judge {
	return func(w *World) Watcher {
		watcher := Watcher{Name: fmt.Sprintf("at most %d inside", k), Property: process.AtMostK}
		if k == 1 {
			watcher.Name, watcher.Property = "mutual exclusion", process.MutualExclusion
		}
		watcher.Watch = func(o *Observation) string {
			if o.Kind != Entered || w.meter.inside <= k {
				return ""
			}
			return fmt.Sprintf("%s are inside, at most %d may be", w.those(clientInside), k)
		}
		return watcher
	}
}

// those lists the processes whose clients are in a phase.
func (w *World) those(phase clientPhase) string {
	var labels []string
	for p := range w.clients {
		if w.clients[p].phase == phase {
			labels = append(labels, w.config.Text(process.ID(p)))
		}
	}
	return strings.Join(labels, ", ")
}

// FencesGrow watches that each fence is larger than all before it.
func FencesGrow(w *World) Watcher {
	var highest process.Fence
	return Watcher{Name: "fences grow", Property: process.FencesGrow, Watch: func(o *Observation) string {
		if o.Kind != Entered {
			return ""
		}
		if o.Fence <= highest {
			return fmt.Sprintf("%s enters with fence %s, an earlier entry had %s", w.config.Text(o.Process), o.Fence, highest)
		}
		highest = o.Fence
		return ""
	}}
}

// FencesGrowCausally watches that fences are unique, and larger than those of all
// entries that happened before.
func FencesGrowCausally(w *World) Watcher {
	given := map[process.Fence]process.ID{}
	watch := func(o *Observation) string {
		if o.Kind != Entered {
			return ""
		}
		if p, twice := given[o.Fence]; twice {
			return fmt.Sprintf("%s enters with fence %s, which %s had", w.config.Text(o.Process), o.Fence, w.config.Text(p))
		}
		given[o.Fence] = o.Process
		past := &w.ghost.fences[o.Process]
		if o.Fence <= *past {
			return fmt.Sprintf("%s enters with fence %s, an entry that happened before had %s", w.config.Text(o.Process), o.Fence, *past)
		}
		*past = o.Fence
		return ""
	}
	return Watcher{Name: "fences grow causally", Property: process.FencesGrowCausally, Ghost: true, Watch: watch}
}

// Progress watches that a run does not end, or stand still, while somebody waits.
// Clients that stay inside until they are told, and paused processes, may hold
// the others up.
func Progress(w *World) Watcher {
	return Watcher{
		Name: "progress", Property: process.Progress,
		Watch: func(*Observation) string { return "" },
		End: func() string {
			if w.reason != Quiet && w.reason != Stalled || w.meter.waiting == 0 || w.heldUp() {
				return ""
			}
			if w.reason == Quiet {
				return w.those(clientWaiting) + " wait for ever: nothing is left that could happen"
			}
			return fmt.Sprintf("%s wait, and nobody has entered for %d ns", w.those(clientWaiting), w.stallTime())
		},
	}
}

func (w *World) heldUp() bool {
	for p := range w.procs {
		if w.procs[p].paused {
			return true
		}
	}
	return w.meter.inside > 0
}

// HappenedBeforeOrder watches that nobody enters while somebody waits whose
// request happened before.
func HappenedBeforeOrder(w *World) Watcher {
	requests := make([][]uint64, w.config.N) // the ghost clock of each at its request
	watch := func(o *Observation) string {
		switch o.Kind {
		case Requested:
			requests[o.Process] = append(requests[o.Process][:0], w.ghost.clocks[o.Process]...)
		case Entered:
			for q := range w.clients {
				earlier := w.clients[q].phase == clientWaiting && process.ID(q) != o.Process &&
					requests[o.Process][q] >= requests[q][q]
				if earlier {
					return fmt.Sprintf("%s enters, but the request of %s happened before its own",
						w.config.Text(o.Process), w.config.Text(process.ID(q)))
				}
			}
		}
		return ""
	}
	return Watcher{Name: "happened-before order", Property: process.OrderHappenedBefore, Ghost: true, Watch: watch}
}

// requestType returns the type of the top layer's message called REQUEST, or 0.
func requestType(spec *process.Spec) (layer uint8, t process.Type) {
	layer = uint8(spec.Depth() - 1)
	for i, m := range spec.Layer(layer).Messages {
		if m.Name == "REQUEST" || m.Name == "REQ" {
			return layer, process.Type(i + 1)
		}
	}
	return layer, 0
}

// TimestampOrder watches that entries occur in the order of (clock, rank), as
// the messages called REQUEST carry it.
func TimestampOrder(w *World) Watcher {
	layer, request := requestType(w.cfg.Spec)
	stamps := make([]process.Stamp, w.config.N)
	var last process.Stamp
	watch := func(o *Observation) string {
		switch {
		case o.Kind == Requested:
			stamps[o.Process] = process.Stamp{} // it may have nobody left to ask
		case o.Kind == Sent && o.Message.Layer == layer && o.Message.Type == request:
			stamps[o.Process] = process.Stamp{Clock: o.Message.Clock, ID: o.Process}
		case o.Kind == Entered && stamps[o.Process].Clock > 0:
			if s := stamps[o.Process]; s.Less(last) {
				return fmt.Sprintf("%s enters with stamp (%d,%s) after (%d,%s)",
					w.config.Text(o.Process), s.Clock, w.config.Text(s.ID), last.Clock, w.config.Text(last.ID))
			}
			last = stamps[o.Process]
		}
		return ""
	}
	return Watcher{Name: "time stamp order", Property: process.OrderTimestamp, Messages: true, Watch: watch}
}

// ArrivalOrder watches that entries occur in the order in which requests reach
// the coordinator of the topology, as long as that is the coordinator: until
// somebody is elected, by the machines of a stack too, or the coordinator crashes,
// or somebody comes back. A message that is repeated counts when it comes first.
func ArrivalOrder(w *World) Watcher {
	layer, request := askType(w.cfg.Spec)
	centre := w.config.Topology.Coordinator
	sent := make([]uint64, w.config.N)    // number of the latest request
	arrived := make([]uint64, w.config.N) // its place in the order, 0: not yet
	arrivals, over := uint64(0), false
	arrive := func(p process.ID) {
		if arrived[p] == 0 && w.clients[p].phase == clientWaiting {
			arrivals++
			arrived[p] = arrivals
		}
	}
	watch := func(o *Observation) string {
		over = over || o.Kind == Elected || o.Kind == Installed || o.Kind == Restarted || o.Kind == Crashed && o.Process == centre
		if over = over || w.oracle.round > 0; over {
			return ""
		}
		isRequest := o.Message != nil && o.Message.Layer == layer && o.Message.Type == request
		switch o.Kind {
		case Requested:
			arrived[o.Process], sent[o.Process] = 0, 0
			if o.Process == centre {
				arrive(centre)
			}
		case Sent:
			if isRequest {
				sent[o.Process] = o.Message.Seq
			}
		case Received:
			if isRequest && o.Process == centre && o.Message.Seq == sent[o.Peer] {
				arrive(o.Peer)
			}
		case Entered:
			return w.overtaken(o.Process, arrived)
		}
		return ""
	}
	return Watcher{Name: "order of arrival", Property: process.OrderArrival, Messages: true, Watch: watch}
}

// overtaken says whose request came before that of p and still waits.
func (w *World) overtaken(p process.ID, arrived []uint64) string {
	for q := range w.clients {
		waits := w.clients[q].phase == clientWaiting && process.ID(q) != p
		if waits && arrived[q] > 0 && arrived[q] < arrived[p] {
			return fmt.Sprintf("%s enters, but the request of %s arrived first", w.config.Text(p), w.config.Text(process.ID(q)))
		}
	}
	return ""
}
