package sim

import (
	"fmt"
	"slices"

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

func (w *World) heldUp() bool { return w.anyPaused() || w.meter.inside > 0 }

func (w *World) anyPaused() bool {
	return slices.ContainsFunc(w.procs, func(p proc) bool { return p.paused })
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

// bypassRun counts how often each waiting process is overtaken.
type bypassRun struct {
	w     *World
	bound int
	since process.Since

	layer    uint8
	request  process.Type
	counting []bool
	from     []uint64 // entries of the run when counting began
	unheard  []process.Set
	latest   []process.Message // the request as it was last sent
	over     bool              // a takeover has begun
}

// BypassSince watches that others enter at most bound times between a moment of a
// request and its entry. If the algorithm recovers from crashes, it counts until the
// recovery begins.
func BypassSince(bound int, since process.Since) Judge {
	return func(w *World) Watcher {
		n := w.config.N
		b := &bypassRun{w: w, bound: bound, since: since, counting: make([]bool, n), from: make([]uint64, n)}
		if since != process.SinceRequest {
			b.layer, b.request = property.Ask(w.cfg.Spec)
			b.latest = make([]process.Message, n)
			for range n {
				b.unheard = append(b.unheard, process.NewSet(n))
			}
		}
		return Watcher{
			Property: process.BoundedBypass, Messages: since != process.SinceRequest, Watch: b.watch,
		}
	}
}

func (b *bypassRun) watch(o *Observation) string {
	changed := o.Kind == Crashed || o.Kind == Restarted || o.Kind == Elected || o.Kind == Installed || b.w.oracle.round > 0
	if b.over = b.over || changed && property.Recovers(b.w.cfg.Spec); b.over {
		return ""
	}
	switch o.Kind {
	case Requested:
		b.counting[o.Process] = false
		if b.since == process.SinceRequest || b.since == process.SinceArrival && o.Process == b.w.config.Topology.Coordinator {
			b.begin(o.Process)
		} else {
			b.unheard[o.Process].Clear()
		}
	case Sent, Received:
		if b.request != 0 && o.Message.Layer == b.layer && o.Message.Type == b.request {
			b.hear(o)
		}
	case Crashed:
		b.forget(o.Process)
	case Entered:
		return b.judge(o.Process)
	}
	return ""
}

func (b *bypassRun) begin(p process.ID) {
	if !b.counting[p] {
		b.counting[p], b.from[p] = true, b.w.meter.entered
	}
}

// hear follows a request on its path.
func (b *bypassRun) hear(o *Observation) {
	switch {
	case o.Kind == Sent:
		b.latest[o.Process].CopyFrom(o.Message)
		b.unheard[o.Process].Add(o.Peer)
	case b.w.clients[o.Peer].phase != clientWaiting || !sameRequest(o.Message, &b.latest[o.Peer]):
	case b.since == process.SinceArrival:
		if o.Process == b.w.config.Topology.Coordinator {
			b.begin(o.Peer)
		}
	default:
		b.heard(o.Peer, o.Process)
	}
}

func sameRequest(m, o *process.Message) bool { return m.Seq == o.Seq && m.Clock == o.Clock }

func (b *bypassRun) heard(p, by process.ID) {
	if b.unheard[p].Has(by) {
		if b.unheard[p].Remove(by); b.unheard[p].Empty() {
			b.begin(p)
		}
	}
}

// forget stops the wait for a process that is down to hear of a request.
func (b *bypassRun) forget(down process.ID) {
	for p := range b.unheard {
		b.heard(process.ID(p), down)
	}
}

func (b *bypassRun) judge(entered process.ID) string {
	return b.w.say(property.Bypass(b.w.scene(), entered, b.bound, func(p process.ID) int {
		if !b.counting[p] {
			return 0
		}
		return int(b.w.meter.entered - b.from[p])
	}))
}

// tokenRun is what can be known about the one token from outside. It starts at the
// coordinator of the topology.
type tokenRun struct {
	property.Token
	w    *World
	sent []process.Message // by rank: as each sent it last; Type 0: never
	over bool              // it may have been lost with a process and replaced
}

// OneToken watches that there is one token, held or in transit: only a process that was
// sent the token sends it on or enters, and no token is missing when no event is left.
// A token that is sent again over the same link, or arrives twice, is the same token.
// The watch ends when a process crashes that may have had the token. If the algorithm
// replaces lost tokens, it ends when any process crashes or a leader is elected, whose
// takeover makes a token.
func OneToken(w *World) Watcher {
	t := &tokenRun{w: w, Token: property.Token{Holder: w.config.Topology.Coordinator, From: process.None, To: process.None}}
	for _, l := range w.cfg.Spec.All() {
		t.over = t.over || l.Carrier // the token is inside other messages
	}
	t.sent = make([]process.Message, w.config.N)
	return Watcher{Property: process.OneToken, Messages: true, Watch: t.watch, Quiet: t.quiet}
}

func (t *tokenRun) watch(o *Observation) string {
	switch {
	case t.over:
		return ""
	case o.Kind == Crashed:
		t.over = property.Recovers(t.w.cfg.Spec) || t.LostWith(o.Process)
	case o.Kind == Elected || o.Kind == Installed || t.w.oracle.round > 0:
		t.over = true
	case o.Kind == Entered:
		return t.w.say(t.Entered(t.w.config, o.Process))
	case (o.Kind == Sent || o.Kind == Received) && property.IsToken(t.w.cfg.Spec.Message(o.Message.Layer, o.Message.Type).Name):
		return t.move(o)
	}
	return ""
}

// move is a token that is sent or arrives.
func (t *tokenRun) move(o *Observation) string {
	if o.Kind == Received {
		t.Received(o.Process, o.Peer, o.Message.Equal(&t.sent[o.Peer]))
		return ""
	}
	same := o.Message.Equal(&t.sent[o.Process])
	if o.Process == t.Holder {
		t.sent[o.Process].CopyFrom(o.Message)
	}
	return t.w.say(t.Sent(t.w.config, o.Process, o.Peer, same))
}

func (t *tokenRun) quiet() string {
	if t.over || t.w.heldUp() {
		return ""
	}
	return t.w.say(t.Missing(t.w.config))
}

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
