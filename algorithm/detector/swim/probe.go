package swim

import "github.com/conclave-io/conclave/process"

// onStart begins to probe. Processes that start together have all started once.
func (m *machine) onStart(started uint64, fx *process.Effects) {
	m.start = started
	if m.c.N == 1 {
		return
	}
	for _, p := range m.order {
		m.starts[p] = 1
	}
	m.probe(fx)
}

// onRestart is R7. The answers will say which other processes are up.
func (m *machine) onRestart(started uint64, fx *process.Effects) {
	m.start = started
	if m.c.N == 1 {
		return
	}
	fx.Rule(ruleR7)
	fx.Broadcast(process.Message{Type: join, Value: int64(m.start)})
	m.probe(fx)
}

// onPeriod is R3b for the last probe, then R1.
func (m *machine) onPeriod(fx *process.Effects) {
	if p := m.target; p != process.None && m.belief(p).state == alive {
		fx.Rule(ruleR3b)
		m.adopt(p, belief{m.starts[p], m.objections[p], suspected}, fx)
	}
	m.probe(fx)
}

// probe is R1.
func (m *machine) probe(fx *process.Effects) {
	fx.Rule(ruleR1)
	m.target = m.next(fx)
	m.probes++
	m.send(m.target, process.Message{Type: ping, Subject: m.self, Seq: m.probes}, fx)
	fx.Arm(periodTimer, m.period, m.period)
	fx.Arm(waitTimer, m.wait, m.wait)
}

// next takes a process that has not had its turn, each with equal probability: so an
// order is drawn while it is used.
func (m *machine) next(fx *process.Effects) process.ID {
	if m.turn == len(m.order) {
		m.turn = 0
	}
	chosen := m.turn + fx.Choose(len(m.order)-m.turn)
	m.order[m.turn], m.order[chosen] = m.order[chosen], m.order[m.turn]
	m.turn++
	return m.order[m.turn-1]
}

// onWait is R3. Failed processes are probed too, in case they are alive, but without
// the help of others.
func (m *machine) onWait(fx *process.Effects) {
	if m.target == process.None || m.dead.Has(m.target) {
		return
	}
	candidates := m.scratchIDs[:0]
	for _, p := range m.order {
		if p != m.target && !m.dead.Has(p) {
			candidates = append(candidates, p)
		}
	}
	m.scratchIDs = candidates // to reuse the memory; sending does not modify it
	helpers := min(m.helpers, len(candidates))
	if helpers > 0 {
		fx.Rule(ruleR3)
	}
	for range helpers {
		i := fx.Choose(len(candidates))
		helper := candidates[i]
		candidates[i] = candidates[len(candidates)-1]
		candidates = candidates[:len(candidates)-1]
		m.send(helper, process.Message{Type: pingReq, Subject: m.target, Seq: m.probes}, fx)
	}
}

// onSuspicion is R5.
func (m *machine) onSuspicion(p process.ID, fx *process.Effects) {
	fx.Rule(ruleR5)
	m.adopt(p, belief{m.starts[p], m.objections[p], failed}, fx)
}

// onMessage handles the start of the sender and the news before the rest.
func (m *machine) onMessage(msg *process.Message, fx *process.Effects) {
	p, started := msg.From, uint64(msg.Value)
	if started < m.starts[p] {
		fx.Rule(ruleR7b)
		return
	}
	if started > m.starts[p] {
		m.adopt(p, belief{start: started}, fx)
		m.excuse(p, fx)
	}
	m.learn(msg, fx)
	switch msg.Type {
	case ping:
		fx.Rule(ruleR2)
		m.send(p, process.Message{Type: ack, Subject: msg.Subject, Seq: msg.Seq}, fx)
	case ack:
		m.onAck(msg, fx)
	case pingReq:
		m.onPingReq(msg, fx)
	case join:
		m.onJoin(p, fx)
	}
}

// excuse ends the probe of p: it has answered, or it is back and the PING went to its
// earlier start.
func (m *machine) excuse(p process.ID, fx *process.Effects) {
	if p == m.target && p != process.None {
		m.target = process.None
		fx.Disarm(waitTimer)
	}
}

// onAck is the end of a probe, or R2a.
func (m *machine) onAck(msg *process.Message, fx *process.Effects) {
	switch {
	case msg.Subject != m.self:
		fx.Rule(ruleR2a)
		m.send(msg.Subject, process.Message{Type: ack, Subject: msg.Subject, Seq: msg.Seq}, fx)
	case msg.Seq == m.probes:
		m.excuse(m.target, fx)
	}
}

// onPingReq is R3a. A process that is asked about itself answers directly.
func (m *machine) onPingReq(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR3a)
	probe := process.Message{Type: ping, Subject: msg.From, Seq: msg.Seq}
	if msg.Subject == m.self {
		probe.Type = ack
		m.send(msg.From, probe, fx)
		return
	}
	m.send(msg.Subject, probe, fx)
}
