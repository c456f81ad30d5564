package ringlist

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// start is L1. A process whose own ELECTION is in flight does not start another.
func (m *machine) start(fx *process.Effects) {
	if m.own != 0 && m.awaited != 0 {
		return
	}
	fx.Rule(ruleL1)
	m.round++
	m.own = m.round
	m.await(m.round, fx)
	msg := process.Message{Type: election, Term: process.MakeTerm(m.own, m.self), Seq: m.elected.Round()}
	msg.IDs, msg.Vector = m.enrol(&msg)
	if !m.box.Pass(&m.hand, msg, m.self, fx) {
		m.conclude(&msg, fx)
	}
}

// await waits for the result of a round: twice round the ring, with a possible timeout
// and a delay D at each process.
func (m *machine) await(round uint64, fx *process.Effects) {
	m.awaited = max(m.awaited, round)
	d := process.Duration(2*(m.c.N+1)*(ring.AckTimeout+1)) * m.c.D()
	fx.Arm(resultTimer, d, d)
}

// settle ends the wait, unless it is for a later election.
func (m *machine) settle(round uint64, fx *process.Effects) {
	if m.awaited != 0 && round >= m.awaited {
		m.awaited = 0
		fx.Disarm(resultTimer)
	}
}

// onElection is L2 and L3.
func (m *machine) onElection(msg *process.Message, fx *process.Effects) {
	starter := msg.IDs[0]
	switch {
	case starter == m.self && msg.Term.Round() == m.own:
		m.conclude(msg, fx)
	case starter == m.self:
		fx.Rule(ruleL2c)
	case slices.Contains(msg.IDs, m.self):
		fx.Rule(ruleL2b)
		m.start(fx)
	case m.merge && m.own != 0 && m.awaited != 0 && m.c.Above(m.self, starter):
		fx.Rule(ruleL2a)
	default:
		m.join(msg, starter, fx)
	}
}

// join is L2.
func (m *machine) join(msg *process.Message, starter process.ID, fx *process.Effects) {
	fx.Rule(ruleL2)
	next := process.Message{Type: election, Term: msg.Term, Seq: max(msg.Seq, m.elected.Round())}
	next.IDs, next.Vector = m.enrol(msg)
	m.await(msg.Term.Round(), fx)
	if !m.box.Pass(&m.hand, next, starter, fx) {
		fx.Rule(ruleL2b)
		m.start(fx)
	}
}

// conclude is L3. If any process has a leader on record in the round of this election
// or a later one, the new leadership is in a round above, unless it is the same.
func (m *machine) conclude(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleL3)
	winner := m.best(msg.IDs, msg.Vector)
	last, t := max(msg.Seq, m.elected.Round()), process.MakeTerm(m.own, winner.ID)
	switch {
	case m.leader == winner.ID && m.elected.Round() >= max(last, m.own):
		t = m.elected
	case last >= m.own:
		m.round = max(m.round, last) + 1
		t = process.MakeTerm(m.round, winner.ID)
	}
	m.own = 0
	m.record(t, fx)
	m.await(t.Round(), fx)
	news := process.Message{Type: coordinator, Term: t, Subject: winner.ID, IDs: []process.ID{m.self}}
	if m.byLoad {
		news.Value = winner.Load
	}
	if !m.box.Pass(&m.hand, news, m.self, fx) {
		m.settle(t.Round(), fx)
	}
	m.check(winner.ID, fx)
}

// record notes the leader, if that is new, and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	if t <= m.elected {
		return
	}
	m.leader, m.elected = t.Leader(), t
	fx.Elect(m.leader, t)
}

// onCoordinator is L4.
func (m *machine) onCoordinator(msg *process.Message, fx *process.Effects) {
	switch {
	case slices.Contains(msg.IDs, m.self):
		fx.Rule(ruleL4a)
		m.settle(msg.Term.Round(), fx)
	case m.better(m.candidate(), ring.Candidate{ID: msg.Subject, Load: msg.Value}):
		fx.Rule(ruleL4b)
		m.start(fx)
	case msg.Term < m.elected:
		fx.Rule(ruleL4c)
		if msg.Subject != m.leader {
			m.start(fx)
		}
	default:
		m.follow(msg, fx)
	}
}

// follow is L4. If the message cannot be passed on, all others have had it.
func (m *machine) follow(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleL4)
	m.record(msg.Term, fx)
	m.settle(msg.Term.Round(), fx)
	next := process.Message{Type: coordinator, Term: msg.Term, Subject: msg.Subject, Value: msg.Value,
		IDs: append(slices.Clone(msg.IDs), m.self)}
	m.box.Pass(&m.hand, next, msg.IDs[0], fx)
	m.check(msg.Subject, fx)
}

// check is L6 for a winner that is already known to be down.
func (m *machine) check(winner process.ID, fx *process.Effects) {
	if m.box.Down(winner) {
		m.replace(fx)
	}
}

func (m *machine) replace(fx *process.Effects) {
	fx.Rule(ruleL6)
	m.awaited, m.own = 0, 0
	m.start(fx)
}

// afterLoss handles that a process was passed over: it applies L6, and handles messages
// that cannot be passed to another process.
func (m *machine) afterLoss(loss ring.Loss, fx *process.Effects) {
	for i := range loss.Stuck {
		m.onStuck(&loss.Stuck[i], fx)
	}
	for i := range loss.Sent {
		if msg := &loss.Sent[i].Message; msg.Type == coordinator && msg.Subject == loss.Peer {
			m.replace(fx)
			return
		}
	}
}

// onStuck is L2b, or the end of a circulation in which no other process is left.
func (m *machine) onStuck(q *ring.Parcel, fx *process.Effects) {
	switch {
	case q.Message.Type == coordinator:
		m.settle(q.Message.Term.Round(), fx)
	case q.End == m.self && q.Message.Term.Round() == m.own:
		m.conclude(&q.Message, fx)
	case q.End != m.self:
		fx.Rule(ruleL2b)
		m.start(fx)
	}
}

// onGone is L8.
func (m *machine) onGone(p process.ID, fx *process.Effects) {
	if p == m.leader {
		fx.Rule(ruleL8)
		m.start(fx)
	}
}
