package tokenring

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// onRestart is R8.
func (m *machine) onRestart(fx *process.Effects) {
	fx.Rule(ruleR8)
	m.joining = true
	fx.Campaign()
}

// onSuspect is R7. A suspicion may be wrong: it makes no token, and the takeover that
// follows waits for the suspect's answer.
func (m *machine) onSuspect(p process.ID, fx *process.Effects) {
	if m.dependsOn(p) {
		m.call(fx)
	}
}

// dependsOn reports whether this process must act if p is gone. If p had the token, it
// got it from its predecessor: so the nearest live predecessor calls the election. A
// promise that no takeover completes must be handled by the process that made it.
func (m *machine) dependsOn(p process.ID) bool {
	next, _ := m.after(m.self)
	return !m.has && (p == next || m.promised > m.term && p == m.promised.Leader())
}

// onFail is R6b if p crashed before it acknowledged the token, and R7 if the token may
// be lost with it. A takeover does not wait for crashed processes.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	depends := m.dependsOn(p)
	m.failed = process.Insert(m.failed, p)
	switch {
	case m.taking:
		m.forget(p)
		m.answered(p, fx)
	case p == m.to:
		m.skip(fx)
	case depends:
		m.call(fx)
	}
}

// onRejoin handles that p is back and has forgotten everything but its promise.
func (m *machine) onRejoin(p process.ID, fx *process.Effects) {
	m.failed = process.Remove(m.failed, p)
	if m.taking {
		m.forget(p)
		m.inquire(p, fx)
	}
}

// onElected is T1. The first answer is this process's own.
func (m *machine) onElected(leader process.ID, t process.Term, fx *process.Effects) {
	if leader != m.self || t <= m.promised {
		return
	}
	fx.Rule(ruleT1)
	m.promise(t, fx)
	m.taking, m.joining = true, false
	m.collect(m.self, m.phase, m.fence)
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

// promise binds the process to a term that has no token yet. A token that is here is
// destroyed; a process that is inside stays inside.
func (m *machine) promise(t process.Term, fx *process.Effects) {
	m.promised = t
	if m.has && m.phase == idle {
		m.stopResting(fx)
	}
	m.has = false
	m.forgetSent(fx)
	m.abandon()
	fx.Save()
}

// abandon ends a takeover in progress.
func (m *machine) abandon() {
	m.taking, m.awaiting = false, m.awaiting[:0]
	m.holder, m.held = process.None, 0
}

// onQuery is T2. Two leaders never share a term, so a second QUERY of the same term
// comes from the same leader, whose earlier incarnation lost the answer. A crashed
// leader would leave a promise that no takeover completes.
func (m *machine) onQuery(msg *process.Message, fx *process.Effects) {
	switch {
	case m.hasFailed(msg.From):
		return
	case msg.Term < m.promised:
		fx.Rule(ruleT2b)
		fx.Send(msg.From, process.Message{Type: nack, Term: m.promised})
		return
	case msg.Term > m.promised:
		m.promise(msg.Term, fx)
	}
	fx.Rule(ruleT2)
	m.joining = false
	fx.Send(msg.From, process.Message{Type: state, Term: msg.Term, Value: int64(m.phase), Fence: m.fence})
}

// onState collects an answer.
func (m *machine) onState(msg *process.Message, fx *process.Effects) {
	if !m.taking || msg.Term != m.promised || !slices.Contains(m.awaiting, msg.From) {
		return
	}
	m.collect(msg.From, process.Phase(msg.Value), msg.Fence)
	m.answered(msg.From, fx)
}

// collect notes the report of p.
func (m *machine) collect(p process.ID, ph process.Phase, f process.Fence) {
	m.fence = max(m.fence, f)
	if ph == inside && (m.holder == process.None || f > m.held) {
		m.holder, m.held = p, f
	}
}

// forget removes the report of p, which has crashed since.
func (m *machine) forget(p process.ID) {
	if m.holder == p {
		m.holder, m.held = process.None, 0
	}
}

// answered notes that the takeover need not wait for p, and ends the takeover if p was
// the last.
func (m *machine) answered(p process.ID, fx *process.Effects) {
	m.awaiting = process.Remove(m.awaiting, p)
	m.finish(fx)
}

// finish is T3.
func (m *machine) finish(fx *process.Effects) {
	if len(m.awaiting) > 0 {
		return
	}
	fx.Rule(ruleT3)
	holder := m.holder
	m.abandon()
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.hasFailed(p) {
			fx.Send(p, process.Message{Type: newEpoch, Term: m.promised, Subject: holder, Fence: m.fence})
		}
	}
	m.begin(m.promised, holder, fx)
	if holder == process.None {
		m.has = true
		m.use(fx)
	}
}

// onNewEpoch is T6. If the first token of the term came first, nothing is left to do.
func (m *machine) onNewEpoch(msg *process.Message, fx *process.Effects) {
	if msg.Term < m.promised || msg.Term == m.term {
		return
	}
	m.fence = max(m.fence, msg.Fence)
	m.begin(msg.Term, msg.Subject, fx)
}

// begin starts a term in which no token was here yet. A holder that has left since it
// was asked passes the token on even if it waits again: it has had its turn.
func (m *machine) begin(t process.Term, holder process.ID, fx *process.Effects) {
	fx.Rule(ruleT6)
	if t > m.promised {
		m.promise(t, fx)
	}
	m.term, m.hop = t, 0
	if m.phase == inside && holder != m.self {
		fx.Rule(ruleT4)
		m.phase = idle
		fx.Revoke()
	}
	if m.phase == waiting {
		m.expect(fx)
	}
	if holder != m.self {
		return
	}
	m.has = true
	if m.phase != inside {
		m.pass(fx)
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
