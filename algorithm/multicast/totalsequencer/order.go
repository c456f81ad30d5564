package totalsequencer

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// multicast is R1. If the sequencer does not get it, the next one gets it after T4.
func (m *machine) multicast(it item, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.sent++
	it.from, it.own, it.data = m.self, m.sent, slices.Clone(it.data)
	m.pending = append(m.pending, it)
	m.submit(it, fx)
}

// submit sends one of this process's multicasts to the sequencer.
func (m *machine) submit(it item, fx *process.Effects) {
	if m.sequencer == m.self {
		m.onData(it, m.term, fx)
		return
	}
	if !m.failed.Has(m.sequencer) {
		fx.Send(m.sequencer, process.Message{Type: it.kind, Term: m.term, Seq: it.own, Value: it.value, Data: it.data})
	}
}

// onData is R2. The sequencer ignores DATA for an earlier or a later term: the sender
// sends it again when it obeys another sequencer.
func (m *machine) onData(it item, to process.Term, fx *process.Effects) {
	if m.sequencer != m.self || to != m.term || m.promised != m.term {
		return
	}
	held := slices.ContainsFunc(m.waiting, func(w item) bool { return w.from == it.from && w.own == it.own })
	if held || it.own <= m.done[it.from] {
		fx.Rule(ruleR2b)
		return
	}
	if it.own > m.done[it.from]+1 {
		fx.Rule(ruleR2a)
		it.data = slices.Clone(it.data)
		m.waiting = append(m.waiting, it)
		return
	}
	m.order(it, fx)
	for at := m.nextWaiting(it.from); at >= 0; at = m.nextWaiting(it.from) {
		it = m.waiting[at]
		m.waiting = slices.Delete(m.waiting, at, at+1)
		m.order(it, fx)
	}
}

// nextWaiting returns the position of the next DATA of a sender among those that wait,
// or -1.
func (m *machine) nextWaiting(p process.ID) int {
	return slices.IndexFunc(m.waiting, func(w item) bool { return w.from == p && w.own == m.done[p]+1 })
}

// order gives a multicast its number. The sequencer has delivered everything that has a
// number. It sends before it delivers: a process that crashes in between has delivered
// nothing that others cannot have.
func (m *machine) order(it item, fx *process.Effects) {
	fx.Rule(ruleR2)
	it.term, it.n = m.term, m.next
	it.place = m.c.Base.Fence + process.MakeFence(m.term.Round(), uint32(it.n))
	fx.Broadcast(it.ordered())
	m.deliver(it, fx)
}

// onOrder is R3. A term that has not begun here may be the next one. The sequencer of a
// term needs no ORDER of it: the takeover has replaced what comes late.
func (m *machine) onOrder(it item, fx *process.Effects) {
	known := slices.ContainsFunc(m.kept, func(k item) bool { return k.n == it.n && k.term == it.term })
	if known || it.n < m.next || it.term < m.promised || it.term == m.term && m.sequencer == m.self {
		return
	}
	fx.Rule(ruleR3)
	it.data = slices.Clone(it.data)
	m.kept = append(m.kept, it)
	if m.taking {
		m.finish(fx)
		return
	}
	if m.promised == m.term {
		m.deliverKept(m.term, fx)
	}
}

// deliverKept delivers what was ordered in a term, as long as no number is missing.
func (m *machine) deliverKept(t process.Term, fx *process.Effects) {
	for {
		at := slices.IndexFunc(m.kept, func(k item) bool { return k.n == m.next && k.term == t })
		if at < 0 {
			return
		}
		it := m.kept[at]
		m.kept = slices.Delete(m.kept, at, at+1)
		m.deliver(it, fx)
	}
}

// deliver remembers a multicast and passes it up. Its data may be lent.
func (m *machine) deliver(it item, fx *process.Effects) {
	process.Assert(it.own == m.done[it.from]+1, "the multicasts of a sender get numbers in their order")
	it.data = slices.Clone(it.data)
	m.log = append(m.log, it)
	m.next++
	m.done[it.from] = it.own
	if it.from == m.self {
		m.pending = slices.Delete(m.pending, 0, 1)
	}
	m.handUp(&it, fx)
	if it.n%m.window == 0 {
		m.tellReport(it.n, fx)
	}
}

// handUp passes a multicast to the application, or to its layer. A multicast that a
// layer above has sent to another process only takes its position in the order.
func (m *machine) handUp(it *item, fx *process.Effects) {
	if it.kind == msg {
		delivered := it.ordered()
		delivered.From, delivered.To = it.from, process.None
		fx.Deliver(&delivered)
		return
	}
	inner := &m.scratchMessage
	if inner.DecodeRaw(it.data, m.c.N) == nil && (inner.To == process.None || inner.To == m.self) {
		inner.Fence = it.place
		fx.Deliver(inner)
	}
}

// tellReport is R5.
func (m *machine) tellReport(n uint64, fx *process.Effects) {
	switch {
	case m.sequencer == m.self:
		m.onReport(m.self, n, fx)
	case !m.failed.Has(m.sequencer):
		fx.Rule(ruleR5)
		fx.Send(m.sequencer, process.Message{Type: report, Clock: n})
	}
}

// onReport is R5 at the sequencer. That a process has delivered a number remains true,
// whichever process is the sequencer.
func (m *machine) onReport(p process.ID, n uint64, fx *process.Effects) {
	m.have[p] = max(m.have[p], n)
	everybody := n
	for q, has := range m.have {
		if !m.failed.Has(process.ID(q)) {
			everybody = min(everybody, has)
		}
	}
	if m.sequencer != m.self || everybody <= m.stable {
		return
	}
	fx.Rule(ruleR5a)
	fx.Broadcast(process.Message{Type: stable, Clock: everybody})
	m.forget(everybody)
}

// forget drops what every process has. If this process is behind, it was declared
// crashed and no longer takes part.
func (m *machine) forget(n uint64) {
	m.stable = max(m.stable, n)
	m.log = slices.DeleteFunc(m.log, func(it item) bool { return it.n <= m.stable })
}

func (it *item) ordered() process.Message {
	return process.Message{
		Type: it.kind + toOrder, Term: it.term, Clock: it.n, Fence: it.place, Subject: it.from, Seq: it.own, Value: it.value, Data: it.data,
	}
}
