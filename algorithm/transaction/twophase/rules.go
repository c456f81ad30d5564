package twophase

import "github.com/conclave-io/conclave/process"

func (m *machine) leads() bool { return m.self == m.coordinator }

// vote is T1 and T2. A process that has decided does not vote.
func (m *machine) vote(yes bool, fx *process.Effects) {
	switch {
	case m.voted || m.phase != working:
	case m.leads() && !yes:
		fx.Rule(ruleT1a)
		m.conclude(false, fx)
	case m.leads():
		m.begin(fx)
	case !yes:
		fx.Rule(ruleT2a)
		m.enter(aborted, fx)
		if m.asked {
			fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Abort})
		}
	case m.asked:
		m.voted = true
		m.prepare(fx)
	default:
		m.voted = true
		fx.Arm(voteTimer, m.voteTime, m.voteTime)
	}
}

// begin is T1.
func (m *machine) begin(fx *process.Effects) {
	fx.Rule(ruleT1)
	m.voted, m.phase = true, voting
	if m.nothing {
		fx.Save()
	}
	fx.Broadcast(process.Message{Type: prepare})
	fx.Arm(voteTimer, m.voteTime, m.voteTime)
	m.count(fx)
}

// prepare is T2.
func (m *machine) prepare(fx *process.Effects) {
	fx.Rule(ruleT2)
	m.phase = prepared
	if !m.flaw.VotesUnlogged {
		fx.Save()
	}
	fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Commit})
	fx.Disarm(voteTimer)
	fx.Arm(retryTimer, m.retryTime, m.retryTime)
}

// onPrepare notes that the vote is wanted, and sends it if it is known.
func (m *machine) onPrepare(fx *process.Effects) {
	m.asked = true
	switch {
	case m.phase == aborted:
		fx.Rule(ruleT2a)
		fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Abort})
	case m.phase == working && m.voted:
		m.prepare(fx)
	case m.phase == prepared:
		fx.Rule(ruleT2)
		fx.Send(m.coordinator, process.Message{Type: vote, Value: process.Commit})
	}
}

func (m *machine) onVote(from process.ID, yes bool, fx *process.Effects) {
	if m.phase != voting {
		return
	}
	if !yes {
		m.no.Add(from)
		fx.Rule(ruleT3a)
		m.conclude(false, fx)
		return
	}
	m.yes.Add(from)
	m.count(fx)
}

// count is T3.
func (m *machine) count(fx *process.Effects) {
	if m.yes.Len() == m.c.N-1 {
		fx.Rule(ruleT3)
		m.conclude(true, fx)
	}
}

// conclude is the decision of the coordinator. It logs the decision before any process
// learns it, unless the mode presumes an abort.
func (m *machine) conclude(commit bool, fx *process.Effects) {
	fx.Disarm(voteTimer)
	m.phase = aborted
	if commit {
		m.phase = committed
	}
	if m.acknowledged() && !(commit && m.flaw.CommitUnlogged) {
		fx.Save()
	}
	fx.Decide(m.outcome())
	m.tell(fx)
	m.expectAcks(fx)
}

// acknowledged reports whether the coordinator logs the decision, and sends it until
// all participants have sent ACK.
func (m *machine) acknowledged() bool { return m.phase == committed || m.nothing }

func (m *machine) outcome() int64 {
	if m.phase == committed {
		return process.Commit
	}
	return process.Abort
}

// tell sends the decision to all processes that might wait for it.
func (m *machine) tell(fx *process.Effects) {
	for p := range process.ID(m.c.N) {
		if p != m.self && !m.no.Has(p) && !m.acked.Has(p) {
			fx.Send(p, process.Message{Type: decision, Value: m.outcome()})
		}
	}
}

// expectAcks waits for T5, if any participant sends ACK.
func (m *machine) expectAcks(fx *process.Effects) {
	if m.ended = !m.acknowledged(); !m.ended {
		fx.Arm(retryTimer, m.retryTime, m.retryTime)
		m.finish(fx)
	}
}

// finish is T5.
func (m *machine) finish(fx *process.Effects) {
	if m.acked.Len()+m.no.Len() < m.c.N-1 {
		return
	}
	fx.Rule(ruleT5)
	m.ended = true
	fx.Save()
	fx.Disarm(retryTimer)
}

func (m *machine) onAck(from process.ID, fx *process.Effects) {
	if !m.leads() || !m.phase.decided() || m.ended || m.no.Has(from) || m.acked.Has(from) {
		return
	}
	m.acked.Add(from)
	m.finish(fx)
}

// enter is a decision of a participant: it is logged and carried out.
func (m *machine) enter(p phase, fx *process.Effects) {
	m.phase = p
	fx.Save()
	fx.Decide(m.outcome())
	fx.Disarm(voteTimer)
	fx.Disarm(retryTimer)
}

// onDecision is T4. A decision from another participant needs no ACK.
func (m *machine) onDecision(from process.ID, commit bool, fx *process.Effects) {
	if m.leads() {
		return
	}
	switch {
	case m.phase.decided():
		fx.Rule(ruleT4a)
	case commit:
		fx.Rule(ruleT4)
		m.enter(committed, fx)
	default:
		fx.Rule(ruleT4)
		m.enter(aborted, fx)
	}
	if from == m.coordinator && (commit || m.nothing) {
		fx.Send(from, process.Message{Type: ack})
	}
}

// onTimer is T2b and T3a for the vote timer, and T5a and T6 for the retry timer.
func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	switch {
	case t == voteTimer && m.leads():
		fx.Rule(ruleT3a)
		m.conclude(false, fx)
	case t == voteTimer:
		fx.Rule(ruleT2b)
		m.enter(aborted, fx)
	case m.leads():
		fx.Rule(ruleT5a)
		m.tell(fx)
		fx.Arm(retryTimer, m.retryTime, m.retryTime)
	case m.flaw.AbortsAlone:
		m.enter(aborted, fx)
	default:
		m.inquire(ruleT6, fx)
	}
}

func (m *machine) inquire(by process.Rule, fx *process.Effects) {
	fx.Rule(by)
	fx.Broadcast(process.Message{Type: inquiry})
	fx.Arm(retryTimer, m.retryTime, m.retryTime)
}

// onInquiry is T6a to T6c. A process that is uncertain itself does not answer.
func (m *machine) onInquiry(from process.ID, fx *process.Effects) {
	answer := process.Abort
	switch {
	case m.ended:
		fx.Rule(ruleT6c)
	case m.phase.decided():
		fx.Rule(ruleT6a)
		answer = m.outcome()
	case m.phase == working && !m.leads():
		fx.Rule(ruleT6b)
		m.enter(aborted, fx)
	default:
		return
	}
	fx.Send(from, process.Message{Type: decision, Value: answer})
}

// restart is T7.
func (m *machine) restart(fx *process.Effects) {
	switch {
	case m.phase.decided():
		fx.Rule(ruleT7)
		fx.Decide(m.outcome())
		if m.leads() && !m.ended {
			m.tell(fx)
			m.expectAcks(fx)
		}
	case m.phase == prepared:
		m.inquire(ruleT7a, fx)
	case m.phase == voting:
		fx.Rule(ruleT7b)
		m.conclude(false, fx)
	case m.leads():
		fx.Rule(ruleT7b)
		m.phase, m.ended = aborted, true
		fx.Decide(process.Abort)
	default:
		fx.Rule(ruleT7b)
		m.enter(aborted, fx)
	}
}
