package check

import (
	"fmt"

	"github.com/conclave-io/conclave/lab/sim"
	"github.com/conclave-io/conclave/process"
)

// The one token is with a process or on a link, and a slot says where. It begins
// with the coordinator of the topology. A token that is sent again is the same one if
// it is the same message that its sender sent last; so each process remembers a
// hash of that.
//
// The slot is 0 at first, then 1 plus the rank of the holder, or behind these the
// link that the token took last, or behind these that all is over, because it may
// have been lost with a process, and made anew.

// tokenMove is a token that a process sends, or that arrives there.
type tokenMove struct {
	arrived bool
	entered bool // it is none: the client enters
	same    bool // as its sender sent it last
	peer    process.ID
	hash    uint64
}

func (s *stepper) isToken(m *process.Message) bool {
	return sim.IsToken(s.spec.Message(m.Layer, m.Type).Name)
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

// bookEntry notes where among the tokens of its step an entry comes.
func (s *stepper) bookEntry() {
	if s.books.tokens {
		s.flags |= booked
		s.extra.token = append(s.extra.token, tokenMove{entered: true})
	}
}

// judgeTokens watches that only who was sent the token sends it on or enters.
func (w *worker) judgeTokens(next []uint32, f *print, p process.ID, x *extra) *Violation {
	if w.tokenOver(next) {
		return nil
	}
	if x.installed {
		w.set(next, f, w.layout.token, w.lostToken())
		return nil
	}
	for _, move := range x.token {
		holder, from, to := w.tokenAt(next)
		switch {
		case move.arrived:
			if holder == process.None && to == p && from == move.peer && move.hash == w.view(next[from]).state.token {
				w.set(next, f, w.layout.token, 1+uint32(p))
			}
		case p == holder && !move.entered:
			w.set(next, f, w.layout.token, uint32(1+w.layout.n*(1+int(p))+int(move.peer)))
		case move.entered && p != holder:
			return &Violation{process.OneToken, p, w.config.Text(p) + " enters, and the token is " + w.tokenPlace(next)}
		case !move.entered && !move.same:
			return &Violation{process.OneToken, p, fmt.Sprintf("%s sends a token, and the token is %s", w.config.Text(p), w.tokenPlace(next))}
		}
	}
	return nil
}

// bookStart notes the tokens that a process sends in its first step.
func (w *worker) bookStart(first []uint32, p process.ID, x *extra) {
	if w.layout.token >= 0 {
		var f print // nobody has asked for it yet
		process.Assert(w.judgeTokens(first, &f, p, x) == nil, "the token begins with the coordinator")
	}
}

// tokenAt returns who has the token, or on which link it is.
func (w *worker) tokenAt(v []uint32) (holder, from, to process.ID) {
	at := int(v[w.layout.token]) - 1
	switch n := w.layout.n; {
	case at < 0:
		return w.config.Topology.Coordinator, process.None, process.None
	case at < n:
		return process.ID(at), process.None, process.None
	default:
		return process.None, process.ID(at/n - 1), process.ID(at % n)
	}
}

func (w *worker) tokenPlace(v []uint32) string {
	holder, from, to := w.tokenAt(v)
	if holder != process.None {
		return "with " + w.config.Text(holder)
	}
	return "on its way from " + w.config.Text(from) + " to " + w.config.Text(to)
}

// tokenOver reports whether the token may have been lost and made anew.
func (w *worker) tokenOver(v []uint32) bool {
	return v[w.layout.token] == w.lostToken() || w.layout.oracle >= 0 && v[w.layout.oracle] > 1
}

func (w *worker) lostToken() uint32 { return uint32(1 + w.layout.n*(w.layout.n+1)) }

// bookCrash is what the crash of p means for the books.
func (w *worker) bookCrash(next []uint32, f *print, p process.ID) {
	if w.layout.arrival >= 0 {
		if w.strike(next, f, p); p == w.config.Topology.Coordinator {
			w.endArrival(next, f)
		}
	}
	if w.layout.token < 0 || w.tokenOver(next) {
		return
	}
	holder, from, to := w.tokenAt(next)
	recovers := w.spec.Needs.Elector || w.spec.Depth() > 1
	if recovers || p == holder || p == from || p == to {
		w.set(next, f, w.layout.token, w.lostToken())
	}
}

// judgeLostToken watches that when nothing is left to happen, the token has come.
func (w *worker) judgeLostToken(v []uint32) *Violation {
	if w.layout.token < 0 || w.tokenOver(v) {
		return nil
	}
	holder, from, to := w.tokenAt(v)
	if holder != process.None {
		return nil
	}
	return &Violation{process.OneToken, process.None, "no token is left: the one from " + w.config.Text(from) +
		" to " + w.config.Text(to) + " never came"}
}
