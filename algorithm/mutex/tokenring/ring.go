package tokenring

import "github.com/conclave-io/conclave/process"

// maxTries is how often a TOKEN is repeated before its receiver is suspected.
const maxTries = 3

// onStart is R1.
func (m *machine) onStart(fx *process.Effects) {
	if m.c.Topology.Coordinator != m.self {
		return
	}
	fx.Rule(ruleR1)
	m.has = true
	m.use(fx)
}

// onAcquire waits for the token, unless it is here. Only a process that waits needs to
// notice that the token is lost.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	m.phase = waiting
	if !m.has {
		m.expect(fx)
		return
	}
	m.stopResting(fx)
	m.enter(fx)
}

func (m *machine) onCancel(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	m.phase = idle
	fx.Disarm(lossTimer)
}

// onRelease is R5. After a promise there is no token to pass on: NEWEPOCH brings its
// replacement.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	fx.Rule(ruleR5)
	m.phase = idle
	if m.has {
		m.pass(fx)
	}
}

// onToken is R2. A restarted process does not know which hops it has seen. If it is
// sent a token, no takeover has begun since.
func (m *machine) onToken(msg *process.Message, fx *process.Effects) {
	if m.joining {
		fx.Rule(ruleR8)
		fx.Campaign()
		return
	}
	if m.acks {
		fx.Send(msg.From, process.Message{Type: ack, Seq: msg.Seq, Term: msg.Term})
	}
	if msg.Term < m.promised || m.isCopy(msg) {
		fx.Rule(ruleR2b)
		return
	}
	if msg.Term > m.term {
		m.begin(msg.Term, process.None, fx)
	}
	m.take(msg, fx)
}

// isCopy reports whether a token was here already, by its hop.
func (m *machine) isCopy(msg *process.Message) bool {
	return msg.Term == m.term && msg.Seq <= m.hop && !m.flaw.AcceptsCopies
}

// take is the rest of R2. Only a wrong detector can leave a second token that is also
// here; the two become one.
func (m *machine) take(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR2)
	m.hop, m.fence = msg.Seq, max(m.fence, msg.Fence)
	m.forgetSent(fx)
	if m.has {
		return
	}
	m.has = true
	m.use(fx)
}

// use applies R3, R4 or R9 to a token that has just come.
func (m *machine) use(fx *process.Effects) {
	switch {
	case m.phase == waiting:
		fx.Disarm(lossTimer)
		m.enter(fx)
	case m.delta > 0:
		fx.Arm(idleTimer, m.delta, m.delta)
	default:
		fx.Rule(ruleR4)
		m.pass(fx)
	}
}

// enter is R3.
func (m *machine) enter(fx *process.Effects) {
	fx.Rule(ruleR3)
	m.phase = inside
	m.fence = m.fence.Next(m.term.Round())
	fx.Grant(m.fence)
}

// onRested is R4 after the token has rested for a while.
func (m *machine) onRested(fx *process.Effects) {
	if !m.has || m.phase != idle {
		return
	}
	fx.Rule(ruleR4)
	m.pass(fx)
}

// pass sends the token on, or is R9 if this process is alone.
func (m *machine) pass(fx *process.Effects) {
	next, places := m.after(m.self)
	if next == m.self {
		fx.Rule(ruleR9)
		if m.phase == waiting {
			fx.Disarm(lossTimer)
			m.enter(fx)
		}
		return
	}
	m.has = false
	m.hop += places
	m.tries = 0
	m.send(next, fx)
}

// send sends the token with the hop and fence that it was passed on with.
func (m *machine) send(to process.ID, fx *process.Effects) {
	fx.Send(to, process.Message{Type: token, Seq: m.hop, Fence: m.fence, Term: m.term})
	if m.acks {
		m.to = to
		fx.Arm(ackTimer, 3*m.c.D(), 3*m.c.D())
	}
}

// after returns the next process behind p that is not known to have crashed, and the
// distance to it. At the latest it returns this process.
func (m *machine) after(p process.ID) (next process.ID, places uint64) {
	for next = p; places == 0 || next != m.self && m.hasFailed(next); places++ {
		next = m.c.Topology.Next(next, m.c.N)
	}
	return next, places
}

// onAck is R6.
func (m *machine) onAck(msg *process.Message, fx *process.Effects) {
	if msg.From == m.to && msg.Term == m.term && msg.Seq == m.hop {
		m.forgetSent(fx)
	}
}

// forgetSent stops waiting for an ACK: the ACK came, or a later token did.
func (m *machine) forgetSent(fx *process.Effects) {
	if m.to == process.None {
		return
	}
	m.to, m.tries = process.None, 0
	fx.Disarm(ackTimer)
}

// onSilence is R6, or R7 when repetition does not help. A process that does not answer
// may still have the token, so the token is sent to no other process.
func (m *machine) onSilence(fx *process.Effects) {
	if m.to == process.None {
		return
	}
	if m.tries == maxTries {
		m.tries = 0
		m.call(fx)
	} else {
		fx.Rule(ruleR6)
		m.tries++
	}
	m.send(m.to, fx)
}

// skip is R6b: the process to which the unanswered TOKEN went has crashed. It may have
// entered and even passed the token on before. If it did, that token has the same hop
// as this one, and the second of the two to arrive at a process is destroyed. The fence
// of this token is at least that of every process passed over.
func (m *machine) skip(fx *process.Effects) {
	fx.Rule(ruleR6b)
	next, places := m.after(m.to)
	m.hop += places
	m.fence += process.Fence(places)
	if next == m.self {
		m.forgetSent(fx)
		m.has = true
		m.use(fx)
		return
	}
	m.tries = 0
	m.send(next, fx)
}

// onLoss is R7 for a client that has waited longer than a full round should take. It
// asks again as long as it waits.
func (m *machine) onLoss(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	if m.flaw.MakesTokens {
		m.has = true
		m.use(fx)
		return
	}
	m.expect(fx)
	m.call(fx)
}

// expect starts to wait for a token.
func (m *machine) expect(fx *process.Effects) {
	n := process.Duration(m.c.N)
	timeout := 4*n*(m.c.D()+m.delta) + 2*n*m.c.E()
	fx.Arm(lossTimer, timeout, timeout)
}

// call is R7.
func (m *machine) call(fx *process.Effects) {
	fx.Rule(ruleR7)
	fx.Campaign()
}

func (m *machine) stopResting(fx *process.Effects) {
	if m.delta > 0 {
		fx.Disarm(idleTimer)
	}
}
