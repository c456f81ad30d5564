package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Bypass watches that others enter at most bound times between a request and its entry.
func Bypass(bound int) Judge { return BypassSince(bound, process.SinceRequest) }

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
