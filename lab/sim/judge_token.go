package sim

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// IsToken reports whether messages of that name are the right to enter.
func IsToken(name string) bool {
	return slices.Contains([]string{"TOKEN", "PRIVILEGE", "PRIV"}, name)
}

// tokenRun is what can be known of the one token from outside. It starts at the
// coordinator of the topology.
type tokenRun struct {
	w      *World
	holder process.ID // None while it is on its way
	from   process.ID // the link that it took last
	to     process.ID
	sent   []process.Message // by rank: as each sent it last; Type 0: never
	over   bool              // it may have been lost with a process, and made anew
}

// OneToken watches that the tokens held and in transit are one: only who was sent
// the token sends it on or enters, and none that was sent is still missing when
// nothing is left to happen. A token that is sent again over the same link, or
// comes twice, is the same token. The watch ends when a process crashes that may
// have had it, or, if the algorithm makes lost tokens anew, when any does or somebody
// is elected, whose takeover makes one.
func OneToken(w *World) Watcher {
	t := &tokenRun{w: w, holder: w.config.Topology.Coordinator, from: process.None, to: process.None}
	for layer := range w.cfg.Spec.Depth() {
		t.over = t.over || w.cfg.Spec.Layer(uint8(layer)).Carrier // the token travels unseen
	}
	t.sent = make([]process.Message, w.config.N)
	return Watcher{Name: "one token", Property: process.OneToken, Messages: true, Watch: t.watch, End: t.end}
}

func (t *tokenRun) watch(o *Observation) string {
	switch {
	case t.over:
		return ""
	case o.Kind == Crashed:
		t.over = t.w.recovers() || o.Process == t.holder || t.holder == process.None && (o.Process == t.to || o.Process == t.from)
	case o.Kind == Elected || o.Kind == Installed || t.w.oracle.round > 0:
		t.over = true
	case o.Kind == Entered && o.Process != t.holder:
		return t.w.config.Text(o.Process) + " enters, and the token is " + t.place()
	case (o.Kind == Sent || o.Kind == Received) && IsToken(t.w.cfg.Spec.Message(o.Message.Layer, o.Message.Type).Name):
		return t.move(o)
	}
	return ""
}

// move is a token that is sent or arrives.
func (t *tokenRun) move(o *Observation) string {
	if o.Kind == Received {
		if t.holder == process.None && o.Process == t.to && o.Peer == t.from && o.Message.Equal(&t.sent[t.from]) {
			t.holder = o.Process
		}
		return "" // a copy of one that has come is for the machine to recognise
	}
	if o.Process == t.holder {
		t.holder, t.from, t.to = process.None, o.Process, o.Peer
		t.sent[o.Process].CopyFrom(o.Message)
		return ""
	}
	if o.Message.Equal(&t.sent[o.Process]) {
		return ""
	}
	return fmt.Sprintf("%s sends a token, and the token is %s", t.w.config.Text(o.Process), t.place())
}

func (t *tokenRun) place() string {
	if t.holder != process.None {
		return "with " + t.w.config.Text(t.holder)
	}
	return "on its way from " + t.w.config.Text(t.from) + " to " + t.w.config.Text(t.to)
}

func (t *tokenRun) end() string {
	if t.over || t.w.reason != Quiet || t.holder != process.None || t.w.heldUp() {
		return ""
	}
	return "no token is left: the one from " + t.w.config.Text(t.from) + " to " + t.w.config.Text(t.to) + " never came"
}

// recovers reports whether the algorithm replaces a coordinator or a token that
// was lost in a crash.
func (w *World) recovers() bool { return w.cfg.Spec.Needs.Elector || w.cfg.Spec.Depth() > 1 }
