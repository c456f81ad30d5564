package central

import (
	"cmp"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// onElected is T1. The state of the old term is dropped before the answers are
// collected, this process's own answer first.
func (m *machine) onElected(leader process.ID, t process.Term, fx *process.Effects) {
	if leader != m.self || t <= m.promised {
		return
	}
	fx.Rule(ruleT1)
	m.promise(t, fx)
	m.taking = true
	m.floor = append(m.floor[:0], make([]uint64, m.c.N)...)
	m.count = m.fence
	m.collect(m.self, m.phase, m.rid, m.fence)
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.hasFailed(p) {
			m.inquire(p, fx)
		}
	}
	m.finish(fx)
}

// inquire sends QUERY to p and waits for its answer.
func (m *machine) inquire(p process.ID, fx *process.Effects) {
	if !slices.Contains(m.awaiting, p) {
		m.awaiting = append(m.awaiting, p)
	}
	fx.Send(p, process.Message{Type: query, Term: m.promised})
}

// promise binds the process to a term that has no coordinator yet. If the process
// coordinated an older term, or was about to, that ends. The fences that it granted
// stay known.
func (m *machine) promise(t process.Term, fx *process.Effects) {
	m.promised, m.owed = t, 0
	m.fence = max(m.fence, m.count)
	m.abandon()
	fx.Save()
}

// abandon drops the state that only a coordinator, or a process about to be one, has.
func (m *machine) abandon() {
	m.holder, m.held = entry{id: process.None}, 0
	m.queue, m.floor, m.count = m.queue[:0], m.floor[:0], 0
	m.taking, m.awaiting = false, m.awaiting[:0]
}

// onQuery is T2. Two leaders never share a term, so a second QUERY of the same term
// comes from the same leader, whose earlier incarnation lost the answer.
func (m *machine) onQuery(msg *process.Message, fx *process.Effects) {
	if msg.Term < m.promised {
		fx.Rule(ruleT2b)
		fx.Send(msg.From, process.Message{Type: nack, Term: m.promised})
		return
	}
	fx.Rule(ruleT2)
	if msg.Term > m.promised {
		m.promise(msg.Term, fx)
	}
	fx.Send(msg.From, process.Message{
		Type: state, Term: msg.Term, Value: int64(m.phase), Seq: m.rid, Fence: m.fence,
	})
}

// onState collects an answer.
func (m *machine) onState(msg *process.Message, fx *process.Effects) {
	if !m.taking || msg.Term != m.promised || !slices.Contains(m.awaiting, msg.From) {
		return
	}
	m.collect(msg.From, process.Phase(msg.Value), msg.Seq, msg.Fence)
	m.answered(msg.From, fx)
}

// collect adds the report of p to the state of the coming term. Two processes can be
// inside only after a wrong suspicion; the fence already stops the older one.
func (m *machine) collect(p process.ID, ph process.Phase, rid uint64, f process.Fence) {
	m.floor[p] = rid
	switch ph {
	case idle:
		m.floor[p]++
	case waiting:
		m.queue = append(m.queue, entry{p, rid})
	case inside:
		if m.holder.id == process.None || f > m.held {
			m.holder, m.held = entry{p, rid}, f
		}
	}
	m.count = max(m.count, f)
}

// forget removes the report of p, which has crashed since.
func (m *machine) forget(p process.ID) {
	m.strike(p)
	if m.holder.id == p {
		m.holder, m.held = entry{id: process.None}, 0
	}
}

// answered notes that the takeover need not wait for p, and ends the takeover if p was
// the last.
func (m *machine) answered(p process.ID, fx *process.Effects) {
	m.awaiting = process.Remove(m.awaiting, p)
	m.finish(fx)
}

// finish is T3: the term begins.
func (m *machine) finish(fx *process.Effects) {
	if len(m.awaiting) > 0 {
		return
	}
	fx.Rule(ruleT3)
	m.taking = false
	slices.SortFunc(m.queue, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.rid, b.rid), cmp.Compare(a.id, b.id))
	})
	m.announce(fx)
	listed := slices.Contains(m.queue, entry{m.self, m.rid})
	m.begin(m.self, m.promised, m.holder.id, listed, fx)
	if m.holder.id == process.None && len(m.queue) > 0 {
		m.pass(fx)
	}
}

// announce sends NEWEPOCH to every live process.
func (m *machine) announce(fx *process.Effects) {
	msg := process.Message{Type: newEpoch, Term: m.promised, Subject: m.holder.id}
	for _, e := range m.queue {
		msg.IDs = append(msg.IDs, e.id)
		msg.Vector = append(msg.Vector, e.rid)
	}
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.hasFailed(p) {
			fx.Send(p, msg)
		}
	}
}

// onNewEpoch is T6. If a message of the new term came first, nothing is left to do.
func (m *machine) onNewEpoch(msg *process.Message, fx *process.Effects) {
	if msg.Term < m.promised || msg.Term == m.term {
		return
	}
	listed := false
	for i, id := range msg.IDs {
		listed = listed || id == m.self && msg.Vector[i] == m.rid
	}
	m.begin(msg.From, msg.Term, msg.Subject, listed, fx)
}

// begin obeys the coordinator of a new term.
func (m *machine) begin(from process.ID, t process.Term, holder process.ID, listed bool, fx *process.Effects) {
	fx.Rule(ruleT6)
	if t > m.promised {
		m.promise(t, fx)
	}
	m.coordinator, m.term, m.retried = from, t, false
	switch {
	case m.owed != 0:
		owed := m.owed
		m.owed = 0
		m.tell(release, owed, fx)
	case m.phase == inside && holder != m.self:
		fx.Rule(ruleT4)
		m.phase = idle
		fx.Revoke()
	}
	if m.phase == waiting {
		m.resume(listed, fx)
	}
}

// resume keeps waiting, now under the new coordinator.
func (m *machine) resume(listed bool, fx *process.Effects) {
	m.polls = 0
	fx.Disarm(replyTimer)
	fx.Disarm(aliveTimer)
	fx.Disarm(pollTimer)
	if !listed {
		m.ask(fx)
		return
	}
	if m.coordinator != m.self {
		fx.Arm(aliveTimer, m.queueTime(m.c.N), m.queueTime(m.c.N))
	}
}

// onNack is T7. It makes no promise: the QUERY of the later term is still to come.
func (m *machine) onNack(msg *process.Message, fx *process.Effects) {
	if !m.taking || msg.Term <= m.promised {
		return
	}
	fx.Rule(ruleT7)
	m.abandon()
}
