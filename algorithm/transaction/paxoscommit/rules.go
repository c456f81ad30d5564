package paxoscommit

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// post sends a message, or handles it at once if it is for this process.
func (m *machine) post(to process.ID, msg process.Message, fx *process.Effects) {
	if to != m.self {
		fx.Send(to, msg)
		return
	}
	msg.From, msg.To = m.self, m.self
	m.onMessage(&msg, fx)
}

// toAcceptors sends a message to all acceptors, to this process last: its own reaction
// comes after sending.
func (m *machine) toAcceptors(msg process.Message, fx *process.Effects) {
	self := false
	for i := range m.acceptors {
		p := (m.coordinator + process.ID(i)) % process.ID(m.c.N)
		if self = self || p == m.self; p != m.self {
			fx.Send(p, msg)
		}
	}
	if self {
		m.post(m.self, msg, fx)
	}
}

func (m *machine) majority(p process.Set) bool { return 2*p.Len() > m.acceptors }

// vote is C1 and C2. A process that has decided does not vote.
func (m *machine) vote(yes bool, fx *process.Effects) {
	switch {
	case m.voted || m.phase != working:
	case m.self == m.coordinator && !yes:
		fx.Rule(ruleC1a)
		m.conclude(process.Abort, fx)
	case !yes:
		fx.Rule(ruleC2a)
		m.enter(process.Abort, fx)
		if m.asked {
			m.toAcceptors(process.Message{Type: vote, Value: process.Abort}, fx)
		}
	case m.self == m.coordinator:
		fx.Rule(ruleC1)
		fx.Broadcast(process.Message{Type: prepare})
		m.prepare(fx)
	case m.asked:
		m.prepare(fx)
	default:
		m.voted = true
		fx.Arm(voteTimer, m.voteTime, m.voteTime)
	}
}

// prepare is C2.
func (m *machine) prepare(fx *process.Effects) {
	fx.Rule(ruleC2)
	m.voted, m.phase = true, prepared
	fx.Save()
	fx.Disarm(voteTimer)
	m.wait(fx)
	m.toAcceptors(process.Message{Type: vote, Value: process.Commit}, fx)
}

// wait sets the timer of C5 to a random time in a range, so that two leaders do not
// disturb each other forever.
func (m *machine) wait(fx *process.Effects) { fx.Arm(retryTimer, m.retryTime, 2*m.retryTime) }

func (m *machine) onPrepare(fx *process.Effects) {
	m.asked = true
	switch {
	case m.phase == aborted:
		fx.Rule(ruleC2a)
		m.toAcceptors(process.Message{Type: vote, Value: process.Abort}, fx)
	case m.phase == working && m.voted:
		m.prepare(fx)
	}
}

// onVote is C3. After a promise of a higher ballot a vote is too late.
func (m *machine) onVote(from process.ID, yes bool, fx *process.Effects) {
	if m.promised.round > 0 {
		return
	}
	fx.Rule(ruleC3)
	m.votes[from] = votedNo
	if yes {
		m.votes[from] = votedYes
	}
	if yes && slices.Contains(m.votes, missing) {
		return
	}
	fx.Rule(ruleC3a)
	fx.Save()
	m.post(m.coordinator, process.Message{Type: accepted, Vector: m.votes}, fx)
}

// onAccepted is C4 and C9.
func (m *machine) onAccepted(msg *process.Message, fx *process.Effects) {
	switch {
	case m.phase.decided():
	case msg.Seq == 0 && slices.Contains(msg.Vector, votedNo):
		fx.Rule(ruleC4)
		m.conclude(process.Abort, fx)
	case msg.Seq == 0 && m.stage != resting: // it has given up ballot 0
	case msg.Seq == 0:
		if m.yes.Add(msg.From); m.majority(m.yes) || m.flaw.OneAcceptor {
			fx.Rule(ruleC4a)
			m.conclude(process.Commit, fx)
		}
	case m.stage == accepting && msg.Seq == m.round:
		if m.yes.Add(msg.From); m.majority(m.yes) {
			fx.Rule(ruleC9)
			m.conclude(m.choice, fx)
		}
	}
}

// onTimer is C2b and C5.
func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if t == voteTimer {
		fx.Rule(ruleC2b)
		m.enter(process.Abort, fx)
		return
	}
	m.recover(ruleC5, fx)
}

// recover begins a ballot.
func (m *machine) recover(by process.Rule, fx *process.Effects) {
	fx.Rule(by)
	m.seen++
	m.stage, m.round = recovering, m.seen
	m.best, m.choice = ballot{by: process.None}, process.Abort
	m.yes.Clear()
	clear(m.merged)
	fx.Save()
	m.wait(fx)
	m.toAcceptors(process.Message{Type: recovery, Seq: m.round}, fx)
}

// onRecover is C6.
func (m *machine) onRecover(b ballot, fx *process.Effects) {
	m.seen = max(m.seen, b.round)
	if !m.promised.less(b) && b != m.promised {
		m.refuse(ruleC6a, b, fx)
		return
	}
	fx.Rule(ruleC6)
	m.promised = b
	fx.Save()
	answer := process.Message{Type: report, Seq: b.round, Clock: m.vb.round, Subject: m.vb.by, Value: m.vd, Vector: m.votes}
	if m.flaw.ReportsNothing {
		answer.Clock, answer.Subject, answer.Value, answer.Vector = 0, process.None, process.Abort, nil
	}
	m.post(b.by, answer, fx)
}

func (m *machine) refuse(by process.Rule, b ballot, fx *process.Effects) {
	fx.Rule(by)
	m.post(b.by, process.Message{Type: refuse, Seq: b.round, Clock: m.promised.round}, fx)
}

// onReport is C7.
func (m *machine) onReport(msg *process.Message, fx *process.Effects) {
	if m.phase.decided() || m.stage != recovering || msg.Seq != m.round {
		return
	}
	m.yes.Add(msg.From)
	if last := (ballot{msg.Clock, msg.Subject}); last.round > 0 && m.best.less(last) {
		m.best, m.choice = last, msg.Value
	}
	for p, v := range msg.Vector {
		m.merged[p] = max(m.merged[p], v)
	}
	if !m.majority(m.yes) {
		return
	}
	fx.Rule(ruleC7)
	if m.best.round == 0 && !slices.ContainsFunc(m.merged, func(v uint64) bool { return v != votedYes }) {
		m.choice = process.Commit
	}
	m.stage = accepting
	m.yes.Clear()
	m.toAcceptors(process.Message{Type: accept, Seq: m.round, Value: m.choice}, fx)
}

// onAccept is C8.
func (m *machine) onAccept(b ballot, d int64, fx *process.Effects) {
	m.seen = max(m.seen, b.round)
	if b.less(m.promised) {
		m.refuse(ruleC8a, b, fx)
		return
	}
	fx.Rule(ruleC8)
	m.promised, m.vb, m.vd = b, b, d
	fx.Save()
	m.post(b.by, process.Message{Type: accepted, Seq: b.round}, fx)
}

// conclude makes a decision for all processes.
func (m *machine) conclude(d int64, fx *process.Effects) {
	m.enter(d, fx)
	fx.Broadcast(process.Message{Type: decision, Value: d})
}

// enter logs a decision and carries it out.
func (m *machine) enter(d int64, fx *process.Effects) {
	m.phase = aborted
	if d == process.Commit {
		m.phase = committed
	}
	fx.Save()
	fx.Decide(d)
	fx.Disarm(voteTimer)
	fx.Disarm(retryTimer)
}

func (m *machine) outcome() int64 {
	if m.phase == committed {
		return process.Commit
	}
	return process.Abort
}

// onDecision is C10.
func (m *machine) onDecision(d int64, fx *process.Effects) {
	if !m.phase.decided() {
		fx.Rule(ruleC10)
		m.enter(d, fx)
	}
}

// restart is C11.
func (m *machine) restart(fx *process.Effects) {
	switch m.phase {
	case prepared:
		m.recover(ruleC11a, fx)
	case working:
		fx.Rule(ruleC11b)
		m.enter(process.Abort, fx)
	default:
		fx.Rule(ruleC11)
		fx.Decide(m.outcome())
	}
}
