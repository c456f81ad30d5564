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
	past      process.Fence // of an entry, if it is no smaller than its own; see ghost
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
