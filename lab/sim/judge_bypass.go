package sim

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// Bypass watches that others enter at most bound times from a request to its
// entry.
func Bypass(bound int) Judge { return BypassSince(bound, process.SinceRequest) }

// bypassRun counts how often each process that waits is overtaken.
type bypassRun struct {
	w     *World
	bound uint64
	since process.Since

	layer    uint8
	request  process.Type
	counting []bool
	from     []uint64 // entries of the run when counting began
	unheard  []process.Set
	latest   []process.Message // the request as it was sent last
	over     bool              // a takeover has begun
}

// BypassSince watches that others enter at most bound times from a moment of a
// request to its entry. If the algorithm recovers from crashes, it counts until
// that begins.
func BypassSince(bound int, since process.Since) Judge {
	return func(w *World) Watcher {
		n := w.config.N
		b := &bypassRun{w: w, bound: uint64(bound), since: since, counting: make([]bool, n), from: make([]uint64, n)}
		if since != process.SinceRequest {
			b.layer, b.request = askType(w.cfg.Spec)
			b.latest = make([]process.Message, n)
			for range n {
				b.unheard = append(b.unheard, process.NewSet(n))
			}
		}
		return Watcher{
			Name: "bounded bypass", Property: process.BoundedBypass, Messages: since != process.SinceRequest, Watch: b.watch,
		}
	}
}

func (b *bypassRun) watch(o *Observation) string {
	changed := o.Kind == Crashed || o.Kind == Restarted || o.Kind == Elected || o.Kind == Installed || b.w.oracle.round > 0
	if b.over = b.over || changed && b.w.recovers(); b.over {
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
		return b.judge()
	}
	return ""
}

func (b *bypassRun) begin(p process.ID) {
	if !b.counting[p] {
		b.counting[p], b.from[p] = true, b.w.meter.entered
	}
}

// hear follows a request on its way.
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

// forget lets nobody wait for a process that is down to hear of a request.
func (b *bypassRun) forget(down process.ID) {
	for p := range b.unheard {
		b.heard(process.ID(p), down)
	}
}

func (b *bypassRun) judge() string {
	for p := range b.w.clients {
		others := b.w.meter.entered - b.from[p]
		if b.counting[p] && b.w.clients[p].phase == clientWaiting && others > b.bound {
			return fmt.Sprintf("others have entered %d times while %s waits, at most %d are allowed",
				others, b.w.config.Text(process.ID(p)), b.bound)
		}
	}
	return ""
}

// askType returns the type of the message that brings a request to whoever
// serves them in order, or 0.
func askType(spec *process.Spec) (layer uint8, t process.Type) {
	layer = uint8(spec.Depth() - 1)
	for i, m := range spec.Layer(layer).Messages {
		if m.Name == "ASK" {
			return layer, process.Type(i + 1)
		}
	}
	return requestType(spec)
}
