package paxos

import "github.com/conclave-io/conclave/process"

// propose is P1. A process that has a value keeps it.
func (m *machine) propose(v int64, fx *process.Effects) {
	if m.has || m.decided {
		return
	}
	fx.Rule(ruleP1)
	m.has, m.own = true, v
	m.wait(fx)
	m.pursue(fx)
}

// pursue brings this process's value nearer to a decision: P1a, P1b or P2.
func (m *machine) pursue(fx *process.Effects) {
	switch {
	case m.leads():
		m.begin(fx)
	case m.leader != process.None:
		fx.Rule(ruleP1a)
		fx.Send(m.leader, process.Message{Type: propose, Value: m.own})
	default:
		fx.Rule(ruleP1b)
		fx.Campaign()
	}
}

func (m *machine) leads() bool { return m.leader == m.self || m.flaw.Alone }

// wait sets the timer of P9 to a random time in a range, so that two leaders do not
// disturb each other forever.
func (m *machine) wait(fx *process.Effects) { fx.Arm(retryTimer, m.retry, 2*m.retry) }

// onElected notes who leads. A leader that is told of another gives up its ballot.
func (m *machine) onElected(leader process.ID, fx *process.Effects) {
	m.leader = leader
	if !m.leads() {
		m.rest()
	}
	if m.has && !m.decided && m.phase == resting {
		m.pursue(fx)
	}
}

// onPropose takes the value of another process. A leader that has none makes it its own.
func (m *machine) onPropose(v int64, fx *process.Effects) {
	if !m.leads() || m.has {
		return
	}
	m.has, m.own = true, v
	m.wait(fx)
	m.begin(fx)
}

// onRetry is P9.
func (m *machine) onRetry(fx *process.Effects) {
	m.wait(fx)
	if m.leads() {
		fx.Rule(ruleP9)
		m.begin(fx)
		return
	}
	fx.Rule(ruleP9a)
	if m.leader != process.None {
		fx.Send(m.leader, process.Message{Type: propose, Value: m.own})
	}
	fx.Campaign()
}

// begin is P2.
func (m *machine) begin(fx *process.Effects) {
	fx.Rule(ruleP2)
	m.seen++
	m.phase, m.round = preparing, m.seen
	m.best, m.choice = m.vb, m.v
	m.poll()
	m.promised = ballot{m.round, m.self}
	fx.Save()
	fx.Broadcast(process.Message{Type: prepare, Seq: m.round})
	m.count(fx)
}

// poll begins to count the answers of a phase, starting with this process's own.
func (m *machine) poll() {
	m.yes.Clear()
	m.no.Clear()
	m.yes.Add(m.self)
}

// onPrepare is P3.
func (m *machine) onPrepare(b ballot, fx *process.Effects) {
	m.seen = max(m.seen, b.round)
	if !m.promised.less(b) && b != m.promised {
		fx.Rule(ruleP3a)
		m.refuse(b, fx)
		return
	}
	fx.Rule(ruleP3)
	m.promised = b
	fx.Save()
	last, v := m.vb, m.v
	if m.flaw.ForgetsAccepted {
		last, v = ballot{by: process.None}, 0
	}
	fx.Send(b.by, process.Message{Type: promise, Seq: b.round, Clock: last.round, Subject: last.by, Value: v})
}

func (m *machine) refuse(b ballot, fx *process.Effects) {
	fx.Send(b.by, process.Message{Type: nack, Seq: b.round, Clock: m.promised.round, Subject: m.promised.by})
}

// onAccept is P5.
func (m *machine) onAccept(b ballot, v int64, fx *process.Effects) {
	m.seen = max(m.seen, b.round)
	if b.less(m.promised) && !m.flaw.BreaksPromise {
		fx.Rule(ruleP5a)
		m.refuse(b, fx)
		return
	}
	fx.Rule(ruleP5)
	m.promised, m.vb, m.v = b, b, v
	fx.Save()
	fx.Send(b.by, process.Message{Type: accepted, Seq: b.round})
}

// onAnswer counts an answer to the current ballot. Answers of the first phase that come
// in the second are ignored: that majority is complete.
func (m *machine) onAnswer(msg *process.Message, fx *process.Effects) {
	m.seen = max(m.seen, msg.Clock)
	wanted := m.phase == preparing && msg.Type == promise || m.phase == accepting && msg.Type == accepted || msg.Type == nack
	if m.phase == resting || msg.Seq != m.round || !wanted {
		return
	}
	if msg.Type == nack {
		m.no.Add(msg.From)
	} else {
		m.yes.Add(msg.From)
	}
	if last := (ballot{msg.Clock, msg.Subject}); msg.Type == promise && m.best.less(last) {
		m.best, m.choice = last, msg.Value
	}
	m.count(fx)
}

// count is P4 and P6 if a majority says yes, and P8 if all have answered otherwise.
func (m *machine) count(fx *process.Effects) {
	switch {
	case 2*m.yes.Len() > m.c.N:
		m.advance(fx)
	case m.yes.Len()+m.no.Len() == m.c.N:
		fx.Rule(ruleP8)
		m.begin(fx)
	}
}

func (m *machine) advance(fx *process.Effects) {
	if m.phase == accepting {
		fx.Rule(ruleP6)
		v := m.choice
		fx.Broadcast(process.Message{Type: decide, Value: v})
		m.decide(v, fx)
		return
	}
	fx.Rule(ruleP4)
	if m.best.by == process.None {
		m.choice = m.own
	}
	m.phase = accepting
	m.poll()
	b := ballot{m.round, m.self}
	if m.promised == b {
		m.vb, m.v = b, m.choice
		fx.Save()
	} else {
		m.yes.Remove(m.self)
		m.no.Add(m.self)
	}
	fx.Broadcast(process.Message{Type: accept, Seq: m.round, Value: m.choice})
	m.count(fx)
}

// decide is P6 and P7.
func (m *machine) decide(v int64, fx *process.Effects) {
	if m.decided {
		return
	}
	m.decided, m.decision = true, v
	m.rest()
	fx.Disarm(retryTimer)
	fx.Decide(v)
}

// rest ends a ballot, if one is in progress.
func (m *machine) rest() {
	m.phase, m.round, m.best, m.choice = resting, 0, ballot{by: process.None}, 0
	m.yes.Clear()
	m.no.Clear()
}

// Ballot rounds are only compared, and new ones are one above those seen. So lowering
// all of them together changes nothing.

func roundsOfState(of process.Machine, visit func(group uint64, p *uint64)) {
	m := of.(*machine)
	visit(1, &m.promised.round)
	visit(1, &m.seen)
	if m.vb.by != process.None {
		visit(1, &m.vb.round)
	}
	if m.phase != resting {
		visit(1, &m.round)
		if m.best.by != process.None {
			visit(1, &m.best.round)
		}
	}
}

func roundsOfMessage(msg *process.Message, visit func(group uint64, p *uint64)) {
	if msg.Type == propose || msg.Type == decide {
		return
	}
	visit(1, &msg.Seq)
	if (msg.Type == promise || msg.Type == nack) && msg.Subject != process.None {
		visit(1, &msg.Clock)
	}
}
