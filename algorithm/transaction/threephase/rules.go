package threephase

import "github.com/conclave-io/conclave/process"

func (m *machine) leads() bool { return m.leader == m.self }

// tell sends a message to all other participants.
func (m *machine) tell(msg process.Message, fx *process.Effects) {
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.failed.Has(p) {
			fx.Send(p, msg)
		}
	}
}

// vote is Q1 and Q2. A process that has decided does not vote. A leader that votes no
// tells all, even if it leads in place of the coordinator.
func (m *machine) vote(yes bool, fx *process.Effects) {
	switch {
	case m.voted || m.phase != working:
	case m.leads() && !yes:
		m.abort(ruleQ1a, fx)
	case m.self == m.coordinator:
		m.begin(fx)
	case !yes:
		fx.Rule(ruleQ2a)
		m.enter(aborted, fx)
		if m.asked {
			fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Abort})
		}
	default:
		m.voted = true
		if m.asked {
			m.prepare(fx)
		} else {
			fx.Arm(voteTimer, m.voteTime, m.voteTime)
		}
	}
}

// begin is Q1. A process that has crashed has no vote.
func (m *machine) begin(fx *process.Effects) {
	if m.failed.Len() > 0 {
		m.abort(ruleQ3a, fx)
		return
	}
	fx.Rule(ruleQ1)
	m.voted, m.phase = true, voting
	fx.Broadcast(process.Message{Type: prepare})
	fx.Arm(voteTimer, m.voteTime, m.voteTime)
	m.count(fx)
}

// prepare is Q2.
func (m *machine) prepare(fx *process.Effects) {
	fx.Rule(ruleQ2)
	m.phase = prepared
	fx.Save()
	fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Commit})
	fx.Disarm(voteTimer)
}

func (m *machine) onPrepare(obeyed bool, fx *process.Effects) {
	switch {
	case m.phase == aborted:
		fx.Rule(ruleQ2a)
		fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Abort})
	case !obeyed || m.phase != working:
	case m.voted:
		m.prepare(fx)
	default:
		m.asked = true
	}
}

func (m *machine) onVote(from process.ID, yes bool, fx *process.Effects) {
	switch {
	case m.phase != voting:
	case !yes:
		m.abort(ruleQ3a, fx)
	default:
		m.answered.Add(from)
		m.count(fx)
	}
}

// count continues once all that have not crashed have answered.
func (m *machine) count(fx *process.Effects) {
	if m.phase.decided() {
		return
	}
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.answered.Has(p) && !m.failed.Has(p) {
			return
		}
	}
	switch {
	case m.phase == voting:
		m.precommit(ruleQ3, fx)
		fx.Disarm(voteTimer)
	case m.states && (m.found || m.phase == precommitted):
		m.precommit(ruleQ8, fx)
	case m.states:
		m.abort(ruleQ8a, fx)
	default:
		fx.Rule(ruleQ5)
		m.enter(committed, fx)
		m.tell(process.Message{Type: decision, Value: process.Commit}, fx)
	}
}

// precommit is Q3 and Q8.
func (m *machine) precommit(by process.Rule, fx *process.Effects) {
	fx.Rule(by)
	m.phase, m.states = precommitted, false
	m.answered.Clear()
	fx.Save()
	if m.flaw.CommitsAtOnce {
		m.phase = committed
		fx.Decide(process.Commit)
	}
	m.tell(process.Message{Type: precommit}, fx)
	m.count(fx)
}

// abort is the decision of a leader to abort.
func (m *machine) abort(by process.Rule, fx *process.Effects) {
	fx.Rule(by)
	m.enter(aborted, fx)
	m.tell(process.Message{Type: decision, Value: process.Abort}, fx)
}

// enter logs a decision and carries it out.
func (m *machine) enter(p phase, fx *process.Effects) {
	m.phase, m.states = p, false
	m.answered.Clear()
	fx.Save()
	fx.Decide(m.outcome())
	fx.Disarm(voteTimer)
	fx.Disarm(retryTimer)
}

func (m *machine) outcome() int64 {
	if m.phase == committed {
		return process.Commit
	}
	return process.Abort
}

// onPrecommit is Q4 and Q7c.
func (m *machine) onPrecommit(from process.ID, obeyed bool, fx *process.Effects) {
	switch {
	case m.phase.decided():
		m.answer(ruleQ7c, from, fx)
	case obeyed:
		fx.Rule(ruleQ4)
		m.phase = precommitted
		fx.Save()
		fx.Send(from, process.Message{Type: ack})
	}
}

// answer tells the decision to a process that asks.
func (m *machine) answer(by process.Rule, to process.ID, fx *process.Effects) {
	fx.Rule(by)
	fx.Send(to, process.Message{Type: decision, Value: m.outcome()})
}

// onDecision is Q6. A leader that learns the decision passes it on: the processes that
// it has asked wait for it.
func (m *machine) onDecision(commit bool, fx *process.Effects) {
	if m.phase.decided() {
		return
	}
	fx.Rule(ruleQ6)
	if commit {
		m.enter(committed, fx)
	} else {
		m.enter(aborted, fx)
	}
	if m.leads() {
		m.tell(process.Message{Type: decision, Value: m.outcome()}, fx)
	}
}

// onFailed notes that a process has crashed. Even if it restarts, it takes no part.
func (m *machine) onFailed(p process.ID, fx *process.Effects) {
	if m.out || m.failed.Has(p) {
		return
	}
	m.failed.Add(p)
	switch {
	case m.flaw.DecidesAlone && p == m.coordinator && m.phase == precommitted:
		m.enter(committed, fx)
	case m.flaw.DecidesAlone && p == m.coordinator && !m.phase.decided():
		m.enter(aborted, fx)
	case !m.leads() && m.first():
		m.lead(fx)
	case !m.leads() || m.phase == working && !m.states || m.phase.decided():
	case m.phase == voting:
		m.abort(ruleQ3a, fx)
	default:
		m.count(fx)
	}
}

// first reports whether all processes before this one in the order have crashed.
func (m *machine) first() bool {
	for p := range process.ID(m.c.N) {
		if m.place(p) < m.place(m.self) && !m.failed.Has(p) {
			return false
		}
	}
	return true
}

// lead is Q7.
func (m *machine) lead(fx *process.Effects) {
	m.leader = m.self
	if m.phase.decided() {
		fx.Rule(ruleQ7a)
		m.tell(process.Message{Type: decision, Value: m.outcome()}, fx)
		return
	}
	fx.Rule(ruleQ7)
	fx.Disarm(voteTimer)
	m.states = true
	m.tell(process.Message{Type: stateReq}, fx)
	m.count(fx)
}

// onStateReq is Q7b and Q7c.
func (m *machine) onStateReq(from process.ID, obeyed bool, fx *process.Effects) {
	switch {
	case m.phase.decided():
		m.answer(ruleQ7c, from, fx)
	case obeyed:
		fx.Rule(ruleQ7b)
		m.leader = from
		fx.Send(from, process.Message{Type: state, Value: int64(m.phase)})
	}
}

// onAnswer counts an answer to the leader's last question. While it asks for states no
// ACK is in flight to it: it has sent no PRECOMMIT before.
func (m *machine) onAnswer(msg *process.Message, fx *process.Effects) {
	asks := m.phase == precommitted || m.states
	if !m.leads() || !asks || m.states != (msg.Type == state) {
		return
	}
	m.answered.Add(msg.From)
	m.found = m.found || msg.Type == state && phase(msg.Value) == precommitted
	m.count(fx)
}

// onInquiry is Q10.
func (m *machine) onInquiry(from process.ID, fx *process.Effects) {
	if m.phase.decided() {
		m.answer(ruleQ10, from, fx)
	}
}

// onTimer is Q2b, Q3a and Q9a.
func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	switch {
	case t == retryTimer:
		m.inquire(fx)
	case m.self == m.coordinator:
		m.abort(ruleQ3a, fx)
	default:
		fx.Rule(ruleQ2b)
		m.enter(aborted, fx)
	}
}

func (m *machine) inquire(fx *process.Effects) {
	fx.Rule(ruleQ9a)
	fx.Broadcast(process.Message{Type: inquiry})
	fx.Arm(retryTimer, m.retryTime, m.retryTime)
}

// restart is Q9.
func (m *machine) restart(fx *process.Effects) {
	m.out = true
	switch {
	case m.phase.decided():
		fx.Rule(ruleQ9)
		fx.Decide(m.outcome())
	case m.phase == working:
		fx.Rule(ruleQ9b)
		m.enter(aborted, fx)
	default:
		m.inquire(fx)
	}
}
