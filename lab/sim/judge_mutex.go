package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// AtMost watches that at most k clients are inside at once. With k = 1 this is
// mutual exclusion.
func AtMost(k int) Judge {
	return func(w *World) Watcher {
		p := process.AtMostK
		if k == 1 {
			p = process.MutualExclusion
		}
		return w.on(Entered, p, func(o *Observation) *property.Violation {
			if w.meter.inside <= k {
				return nil
			}
			return property.AtMost(w.scene(), k, o.Process)
		})
	}
}

// FencesGrow watches that each fence is larger than all earlier ones.
func FencesGrow(w *World) Watcher {
	var highest process.Fence
	return w.on(Entered, process.FencesGrow, func(o *Observation) *property.Violation {
		before := highest
		highest = max(highest, o.Fence)
		return property.FencesGrow(w.scene(), o.Process, o.Fence, before)
	})
}

// FencesGrowCausally watches that fences are unique, and larger than those of all
// entries that happened before.
func FencesGrowCausally(w *World) Watcher {
	given := map[process.Fence]bool{}
	watcher := w.on(Entered, process.FencesGrowCausally, func(o *Observation) *property.Violation {
		again, past := given[o.Fence], w.ghost.fences[o.Process]
		given[o.Fence], w.ghost.fences[o.Process] = true, max(past, o.Fence)
		return property.FencesGrowCausally(w.scene(), o.Process, o.Fence, past, again)
	})
	watcher.Ghost = true
	return watcher
}

// Progress watches that a run does not end, or stall, while a client waits. Clients
// that stay inside until they are told to leave, and paused processes, may delay the
// others.
func Progress(w *World) Watcher {
	return Watcher{
		Property: process.Progress,
		End: func() string {
			if w.reason != Quiet && w.reason != Stalled || w.meter.waiting == 0 || w.heldUp() {
				return ""
			}
			if w.reason == Quiet {
				return w.say(property.Progress(w.scene(), 0))
			}
			return w.say(property.Progress(w.scene(), w.stallTime()))
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

// HappenedBeforeOrder watches that no process enters while another waits whose request
// happened before.
func HappenedBeforeOrder(w *World) Watcher {
	requests := make([][]uint64, w.config.N) // the ghost clock of each at its request
	watch := func(o *Observation) string {
		switch o.Kind {
		case Requested:
			requests[o.Process] = append(requests[o.Process][:0], w.ghost.clocks[o.Process]...)
		case Entered:
			return w.say(property.HappenedBefore(w.scene(), o.Process, func(q process.ID) bool {
				return requests[o.Process][q] >= requests[q][q]
			}))
		}
		return ""
	}
	return Watcher{Property: process.OrderHappenedBefore, Ghost: true, Watch: watch}
}

// TimestampOrder watches that entries occur in the order of (clock, rank) carried by
// the messages called REQUEST.
func TimestampOrder(w *World) Watcher {
	layer, request := property.Request(w.cfg.Spec)
	stamps := make([]process.Stamp, w.config.N)
	var last process.Stamp
	watch := func(o *Observation) string {
		switch {
		case o.Kind == Requested:
			stamps[o.Process] = process.Stamp{} // it may have no process left to ask
		case o.Kind == Sent && o.Message.Layer == layer && o.Message.Type == request:
			stamps[o.Process] = process.Stamp{Clock: o.Message.Clock, ID: o.Process}
		case o.Kind == Entered && stamps[o.Process].Clock > 0:
			before := last
			last = stamps[o.Process]
			return w.say(property.Timestamps(w.scene(), last, before))
		}
		return ""
	}
	return Watcher{Property: process.OrderTimestamp, Messages: true, Watch: watch}
}

// ArrivalOrder watches that entries occur in the order in which requests reach the
// coordinator of the topology, as long as that process coordinates: until a leader is
// elected, also by the machines of a stack, or the coordinator crashes, or a process
// restarts. A duplicated message counts when it first arrives.
func ArrivalOrder(w *World) Watcher {
	layer, request := property.Ask(w.cfg.Spec)
	centre := w.config.Topology.Coordinator
	sent := make([]uint64, w.config.N)    // number of the latest request
	arrived := make([]uint64, w.config.N) // its position in the order, 0: not yet
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
			return w.say(property.Arrival(w.scene(), o.Process, func(q process.ID) uint64 { return arrived[q] }))
		}
		return ""
	}
	return Watcher{Property: process.OrderArrival, Messages: true, Watch: watch}
}
