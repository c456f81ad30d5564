package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// The one token is at a process or on a link, and a slot says where. It starts at the
// coordinator of the topology. A token that is sent again is the same one if it equals
// the last message of its sender. So each process remembers a hash of that message.
//
// The slot is 0 at first, then 1 plus the rank of the holder. Larger values stand for
// the link that the token took last, and the largest says that the watch is over,
// because the token may have been lost with a process and replaced.

// tokenMove is a token that a process sends, or that arrives there.
type tokenMove struct {
	arrived bool
	entered bool // not a move: the client enters
	same    bool // equal to what its sender sent last
	peer    process.ID
	hash    uint64
}

func (s *stepper) isToken(m *process.Message) bool {
	return property.IsToken(s.spec.Message(m.Layer, m.Type).Name)
}

// hashOf returns a hash of a message that is never 0.
func hashOf(m *process.Message) uint64 { return printOf(m.AppendRaw(nil)).nonzero().lo }

// bookToken notes a token that leaves.
func (s *stepper) bookToken(to process.ID, m *process.Message) {
	sent := *m
	sent.To = to
	hash := hashOf(&sent)
	s.flags |= booked
	s.extra.token = append(s.extra.token, tokenMove{peer: to, hash: hash, same: hash == s.next.token})
	s.next.token = hash
}

// bookEntry notes the position of an entry among the tokens of its step.
func (s *stepper) bookEntry() {
	if s.books.tokens {
		s.flags |= booked
		s.extra.token = append(s.extra.token, tokenMove{entered: true})
	}
}

// judgeTokens watches that only a process that was sent the token sends it on or
// enters.
func (w *worker) judgeTokens(next []uint32, f *print, p process.ID, x *extra) *Violation {
	if w.tokenOver(next) {
		return nil
	}
	if x.installed {
		w.set(next, f, w.layout.token, w.lostToken())
		return nil
	}
	for _, move := range x.token {
		t := w.tokenAt(next)
		before := t
		var broken *Violation
		switch {
		case move.arrived:
			t.Received(p, move.peer, t.From != process.None && move.hash == w.view(next[t.From]).state.token)
		case move.entered:
			broken = t.Entered(w.config, p)
		default:
			broken = t.Sent(w.config, p, move.peer, move.same)
		}
		if broken != nil {
			return broken
		}
		if t != before {
			w.set(next, f, w.layout.token, w.packToken(t))
		}
	}
	return nil
}

// packToken returns the slot value of a token.
func (w *worker) packToken(t property.Token) uint32 {
	if t.Holder != process.None {
		return 1 + uint32(t.Holder)
	}
	return uint32(1 + w.layout.n*(1+int(t.From)) + int(t.To))
}

// bookStart notes the tokens that a process sends in its first step.
func (w *worker) bookStart(first []uint32, p process.ID, x *extra) {
	if w.layout.token >= 0 {
		var f print // not requested yet
		process.Assert(w.judgeTokens(first, &f, p, x) == nil, "the token begins with the coordinator")
	}
}

// tokenAt returns where the token is.
func (w *worker) tokenAt(v []uint32) property.Token {
	at := int(v[w.layout.token]) - 1
	switch n := w.layout.n; {
	case at < 0:
		return property.Token{Holder: w.config.Topology.Coordinator, From: process.None, To: process.None}
	case at < n:
		return property.Token{Holder: process.ID(at), From: process.None, To: process.None}
	default:
		return property.Token{Holder: process.None, From: process.ID(at/n - 1), To: process.ID(at % n)}
	}
}

// tokenOver reports whether the token may have been lost and replaced.
func (w *worker) tokenOver(v []uint32) bool {
	return v[w.layout.token] == w.lostToken() || w.layout.oracle >= 0 && v[w.layout.oracle] > 1
}

func (w *worker) lostToken() uint32 { return uint32(1 + w.layout.n*(w.layout.n+1)) }

// bookCrash is the effect of the crash of p on the books.
func (w *worker) bookCrash(next []uint32, f *print, p process.ID) {
	if w.layout.arrival >= 0 {
		if w.strike(next, f, p); p == w.config.Topology.Coordinator {
			w.endArrival(next, f)
		}
	}
	if w.layout.token < 0 || w.tokenOver(next) {
		return
	}
	if t := w.tokenAt(next); property.Recovers(w.spec) || t.LostWith(p) {
		w.set(next, f, w.layout.token, w.lostToken())
	}
}

// judgeLostToken watches that, when no event is left, the token has arrived.
func (w *worker) judgeLostToken(v []uint32) *Violation {
	if w.layout.token < 0 || w.tokenOver(v) {
		return nil
	}
	t := w.tokenAt(v)
	return t.Missing(w.config)
}
