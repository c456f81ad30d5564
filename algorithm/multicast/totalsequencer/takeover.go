package totalsequencer

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// onFail is R4, and the part of T3 about crashed processes. While the expected
// sequencer has crashed, every further crash is a reason to call an election: it may be
// the crash of a winner that has told no one yet.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	if m.failed.Has(p) {
		return
	}
	m.failed.Add(p)
	m.callElection(fx)
	if m.taking {
		m.awaiting.Remove(p)
		m.finish(fx)
	}
}

func (m *machine) callElection(fx *process.Effects) {
	leader := m.c.Topology.Coordinator
	if m.promised != 0 {
		leader = m.promised.Leader()
	}
	if m.failed.Has(leader) {
		fx.Rule(ruleR4)
		fx.Campaign()
	}
}

// onElected is T1.
func (m *machine) onElected(leader process.ID, t process.Term, fx *process.Effects) {
	if leader != m.self || t <= m.promised {
		return
	}
	fx.Rule(ruleT1)
	m.promise(t)
	m.taking = true
	m.states[m.self] = m.next - 1
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.failed.Has(p) {
			m.awaiting.Add(p)
			fx.Send(p, process.Message{Type: query, Term: t, Clock: m.next - 1})
		}
	}
	m.finish(fx)
}

// promise ends what the process did in earlier terms. The senders send DATA again that
// waits for a number.
func (m *machine) promise(t process.Term) {
	m.promised, m.waiting = t, m.waiting[:0]
	m.kept = slices.DeleteFunc(m.kept, func(k item) bool { return k.term < t })
	m.taking = false
	m.awaiting.Clear()
	clear(m.states)
	clear(m.have)
}

// onQuery is T2. The winner may have crashed since.
func (m *machine) onQuery(in *process.Message, fx *process.Effects) {
	if in.Term <= m.promised {
		return
	}
	fx.Rule(ruleT2)
	m.promise(in.Term)
	m.sendAgain(in.From, in.Clock, fx)
	fx.Send(in.From, process.Message{Type: state, Term: in.Term, Clock: m.next - 1})
	m.callElection(fx)
}

// sendAgain sends p what was delivered with numbers above n, as ordered in the promised
// term.
func (m *machine) sendAgain(p process.ID, n uint64, fx *process.Effects) {
	for _, it := range m.log {
		if it.n > n {
			it.term = m.promised
			fx.Send(p, it.ordered())
		}
	}
}

// onState collects an answer.
func (m *machine) onState(in *process.Message, fx *process.Effects) {
	if !m.taking || in.Term != m.promised || !m.awaiting.Has(in.From) {
		return
	}
	m.awaiting.Remove(in.From)
	m.states[in.From] = in.Clock
	m.finish(fx)
}

// finish is T3. Messages in flight from a process that has crashed since may be lost,
// so the winner does not wait for them: no live process has delivered them. It keeps
// none of them either, because their numbers are now given to others.
func (m *machine) finish(fx *process.Effects) {
	if !m.awaiting.Empty() || m.lacks() {
		return
	}
	fx.Rule(ruleT3)
	m.taking = false
	m.deliverKept(m.promised, fx)
	m.kept = slices.DeleteFunc(m.kept, func(k item) bool { return k.term == m.promised })
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.failed.Has(p) {
			m.sendAgain(p, m.states[p], fx)
			fx.Send(p, process.Message{Type: newEpoch, Term: m.promised, Clock: m.next - 1})
		}
	}
	m.begin(m.self, fx)
}

// lacks reports whether a live process has delivered a multicast that is not here yet.
func (m *machine) lacks() bool {
	last := m.next - 1
	for slices.ContainsFunc(m.kept, func(k item) bool { return k.n == last+1 && k.term == m.promised }) {
		last++
	}
	for p, n := range m.states {
		if n > last && !m.failed.Has(process.ID(p)) {
			return true
		}
	}
	return false
}

// onNewEpoch is T4.
func (m *machine) onNewEpoch(in *process.Message, fx *process.Effects) {
	if in.Term < m.promised || in.Term == m.term {
		return
	}
	if in.Term > m.promised {
		m.promise(in.Term)
	}
	m.begin(in.From, fx)
}

// begin obeys the sequencer of the promised term.
func (m *machine) begin(sequencer process.ID, fx *process.Effects) {
	fx.Rule(ruleT4)
	m.sequencer, m.term = sequencer, m.promised
	m.deliverKept(m.term, fx)
	for _, it := range slices.Clone(m.pending) {
		m.submit(it, fx)
	}
}
