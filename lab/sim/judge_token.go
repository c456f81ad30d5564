package sim

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

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
