package check

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// Order of timestamps, order of arrival and the one token are properties of messages.
// Little has to be remembered for them: the stamp of the present request and that of
// the last entry; which requests have reached the coordinator, in which order; and
// where the token is.

// books says which messages are of interest.
type books struct {
	stamps, arrivals, tokens bool
	layer                    uint8
	request, ask             process.Type // of that layer, or 0
}

func newBooks(c *Config) books {
	b := books{stamps: c.checks(process.OrderTimestamp), arrivals: c.checks(process.OrderArrival), tokens: c.checks(process.OneToken)}
	b.layer, b.request = property.Request(c.Spec)
	_, b.ask = property.Ask(c.Spec)
	return b
}

// extra is what to enter into the books after a step, and what matters to liveness.
type extra struct {
	installed bool   // a layer of the stack has elected
	from      int    // 1 plus the rank of the process whose request reached the coordinator, or 0
	seq       uint64 // its number
	token     []tokenMove
	past      process.Fence // of an entry, if it is no smaller than its own; see enterPast
	decided   []int64       // in this step
	victims   []process.ID  // of deadlocks that were declared in this step
	armed     []uint64      // the timers that were set, for liveness; see timerKey
}

// bookRequest forgets the previous request: another begins, or its client has left.
func (s *stepper) bookRequest() { s.next.stamp, s.next.asking = 0, 0 }

// bookSend notes a message that leaves.
func (s *stepper) bookSend(to process.ID, m *process.Message) {
	l := &s.next
	if m.Layer == s.books.layer && l.phase == waiting {
		if s.books.stamps && m.Type == s.books.request {
			l.stamp = m.Clock
		}
		if s.books.arrivals && m.Type == s.books.ask {
			l.asking = m.Seq
		}
	}
	if s.books.tokens && s.isToken(m) {
		s.bookToken(to, m)
	}
}

// bookReceive notes a message that arrives, before the step.
func (s *stepper) bookReceive(m *process.Message) {
	centre := s.next.proc == s.config.Topology.Coordinator
	if s.books.arrivals && centre && m.Layer == s.books.layer && m.Type == s.books.ask {
		s.flags |= booked
		s.extra.from, s.extra.seq = int(m.From)+1, m.Seq
	}
	if s.books.tokens && s.isToken(m) {
		s.flags |= booked
		s.extra.token = append(s.extra.token, tokenMove{arrived: true, peer: m.From, hash: hashOf(m)})
	}
}

// bookInstalled notes that a layer of the stack has elected: a takeover begins.
func (s *stepper) bookInstalled() {
	if s.books.arrivals || s.books.tokens {
		s.flags |= booked
		s.extra.installed = true
	}
}

// judgeBooks enters a step into the books and returns a violation.
func (w *worker) judgeBooks(next []uint32, f *print, p process.ID, e *edge) *Violation {
	if w.layout.arrival >= 0 {
		if broken := w.bookArrival(next, f, p, e); broken != nil {
			return broken
		}
	}
	if w.layout.token >= 0 && e.extra > 0 {
		if broken := w.judgeTokens(next, f, p, &w.extras[e.extra]); broken != nil {
			return broken
		}
	}
	if slot := w.layout.declared; slot >= 0 && e.flags&entered != 0 {
		w.set(next, f, slot, next[slot]&^(1<<p))
	}
	if victims := w.extras[e.extra].victims; e.extra > 0 && len(victims) > 0 {
		return w.judgeVictims(next, f, p, victims)
	}
	if values := w.extras[e.extra].decided; e.extra > 0 && len(values) > 0 {
		if w.cfg.transaction() {
			return w.judgeOutcomes(next, p, e.outcome, values)
		}
		return w.judgeDecisions(next, f, p, int(w.view(next[p]).state.decisions)-len(values), values)
	}
	if w.layout.stamp >= 0 && e.flags&entered != 0 {
		return w.judgeStamp(next, f, p)
	}
	return nil
}

// judgeStamp watches that entries occur in the order of the timestamps of their
// requests.
func (w *worker) judgeStamp(next []uint32, f *print, p process.ID) *Violation {
	own := w.view(next[p]).state.stamp
	if own == 0 {
		return nil
	}
	process.Assert(own < 1<<(32-stampBits), "time stamps of a search are small")
	packed, last := uint32(own)<<stampBits|uint32(p), next[w.layout.stamp]
	w.set(next, f, w.layout.stamp, packed)
	return property.Timestamps(w.sceneOf(next), process.Stamp{Clock: own, ID: p},
		process.Stamp{Clock: uint64(last >> stampBits), ID: process.ID(last & (1<<stampBits - 1))})
}

// stampBits is the number of bits of a slot that hold the rank in a timestamp.
const stampBits = 6

// The order of arrival: a slot for each process has the position of its request among
// those that have reached the coordinator and wait, from 1, or 0.

// bookArrival applies a step to the order of arrival, and judges an entry.
func (w *worker) bookArrival(next []uint32, f *print, p process.ID, e *edge) *Violation {
	if w.arrivalOver(next) {
		return nil
	}
	x := &w.extras[e.extra]
	if x.installed {
		w.set(next, f, w.layout.installed, 1)
		w.endArrival(next, f)
		return nil
	}
	if e.flags&(requested|left) != 0 {
		w.strike(next, f, p)
	}
	if e.flags&requested != 0 && p == w.config.Topology.Coordinator {
		w.arrive(next, f, p)
	}
	if x.from > 0 {
		q := process.ID(x.from - 1)
		if l := w.view(next[q]); l.phase == waiting && l.state.asking == x.seq {
			w.arrive(next, f, q)
		}
	}
	if e.flags&entered == 0 {
		return nil
	}
	broken := property.Arrival(w.sceneOf(next), p, func(q process.ID) uint64 { return uint64(next[w.layout.arrival+int(q)]) })
	w.strike(next, f, p)
	return broken
}

// arrivalOver reports whether the coordinator of the topology is no longer that of the
// algorithm, or has forgotten the order of arrival.
func (w *worker) arrivalOver(v []uint32) bool {
	return positive(v, w.layout.installed) || w.layout.oracle >= 0 && v[w.layout.oracle] > 1 ||
		positive(v, w.layout.budgets[restarts]) || w.view(v[w.config.Topology.Coordinator]).down
}

func positive(v []uint32, slot int) bool { return slot >= 0 && v[slot] > 0 }

// arrive gives a request the last position, unless it has one.
func (w *worker) arrive(next []uint32, f *print, p process.ID) {
	slot, last := w.layout.arrival+int(p), uint32(0)
	if next[slot] > 0 {
		return
	}
	for _, position := range next[w.layout.arrival : w.layout.arrival+w.layout.n] {
		last = max(last, position)
	}
	w.set(next, f, slot, last+1)
}

// endArrival forgets the order, which is over.
func (w *worker) endArrival(next []uint32, f *print) {
	for slot := w.layout.arrival; slot >= 0 && slot < w.layout.arrival+w.layout.n; slot++ {
		w.set(next, f, slot, 0)
	}
}

// strike removes a process that no longer waits. Those behind it move up, so that equal
// orders are equal states.
func (w *worker) strike(next []uint32, f *print, p process.ID) {
	own := next[w.layout.arrival+int(p)]
	if own == 0 {
		return
	}
	w.set(next, f, w.layout.arrival+int(p), 0)
	for slot := w.layout.arrival; slot < w.layout.arrival+w.layout.n; slot++ {
		if next[slot] > own {
			w.set(next, f, slot, next[slot]-1)
		}
	}
}

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

// Causality is tracked by requests here: each process and each message knows how many
// requests of each process are in its past. For two requests that gives the same order
// as clocks that count all events, with fewer states.

func (s *stepper) wantsPast() bool {
	return s.cfg.checks(process.OrderHappenedBefore)
}

// noteAcquire is called when a client asks, before the step.
func (s *stepper) noteAcquire() {
	l := &s.next
	if len(l.past) > 0 {
		l.past[l.proc]++
		l.request = append(l.request[:0], l.past...)
	}
}

// join is called before the step that receives.
func (s *stepper) join(m *message) {
	l := &s.next
	for q := range l.past {
		l.past[q] = max(l.past[q], m.past[q])
	}
	if s.cfg.checks(process.FencesGrowCausally) {
		l.passed = max(l.passed, m.passed)
	}
}

// enterPast returns the largest fence in the past of a process that enters.
func (s *stepper) enterPast(fence process.Fence) process.Fence {
	if !s.cfg.checks(process.FencesGrowCausally) {
		return 0
	}
	if fence <= s.next.passed {
		s.flags |= booked
		s.extra.past = s.next.passed
	}
	return max(s.next.passed, fence)
}
