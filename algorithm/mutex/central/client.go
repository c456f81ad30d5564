package central

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// onAcquire is R1. Between a promise and NEWEPOCH there is no coordinator to ask. T6
// will ask, because the new coordinator does not list the request.
func (m *machine) onAcquire(fx *process.Effects) {
	process.Assert(m.phase == idle, "a process has one request at a time")
	fx.Rule(ruleR1)
	m.phase, m.retried, m.polls = waiting, false, 0
	m.rid++
	m.ask(fx)
}

// ask sends REQUEST and waits for an answer. If this process is the coordinator, the
// answer is immediate.
func (m *machine) ask(fx *process.Effects) {
	m.tell(request, m.rid, fx)
	if m.phase == waiting && m.coordinator != m.self {
		fx.Arm(replyTimer, m.replyTime(), m.replyTime())
	}
}

// tell sends a client's message to the coordinator, if it knows one to obey.
func (m *machine) tell(t process.Type, rid uint64, fx *process.Effects) {
	if m.coordinator == process.None || m.promised > m.term {
		return
	}
	if m.coordinator == m.self {
		m.coordinate(m.self, t, rid, fx)
		return
	}
	fx.Send(m.coordinator, process.Message{Type: t, Seq: rid, Term: m.term})
}

// onGranted is R3. A grant that is not wanted is returned to its sender. A second grant
// for the entry in progress answers a retransmitted REQUEST; returning it would let
// another process in.
func (m *machine) onGranted(msg *process.Message, fx *process.Effects) {
	if !m.hear(msg, fx) {
		return
	}
	switch {
	case m.phase == waiting && msg.Seq == m.rid:
		m.disarm(fx)
		m.enter(msg.Fence, fx)
	case m.phase == inside && msg.Seq == m.rid:
	default:
		fx.Rule(ruleR3b)
		fx.Send(msg.From, process.Message{Type: release, Seq: msg.Seq, Term: msg.Term})
	}
}

// hear reports whether a coordinator's message counts. A message of a term older than
// the promise does not count, and a grant in it need not be returned: its sender has
// answered the takeover or has crashed. A message of a new term may overtake its
// NEWEPOCH, and then acts as one.
func (m *machine) hear(msg *process.Message, fx *process.Effects) bool {
	if msg.Term < m.promised {
		return false
	}
	if msg.Term > m.term {
		m.begin(msg.From, msg.Term, m.self, msg.Seq == m.rid, fx)
	}
	return true
}

func (m *machine) enter(f process.Fence, fx *process.Effects) {
	fx.Rule(ruleR3)
	process.Assert(f > m.fence, "a grant has a larger fence than any seen before")
	m.phase, m.fence = inside, f
	fx.Grant(f)
}

// onDenied is R4.
func (m *machine) onDenied(msg *process.Message, fx *process.Effects) {
	if !m.hear(msg, fx) || m.phase != waiting || msg.Seq != m.rid {
		return
	}
	fx.Rule(ruleR4)
	m.retried = false
	fx.Disarm(replyTimer)
	m.await(int(msg.Value), fx)
	fx.Deny(int(msg.Value))
}

// await arms the timer after a denial: until the next poll, or until a queue with this
// many requests ahead should have moved on.
func (m *machine) await(position int, fx *process.Effects) {
	if m.mode == denyPoll {
		backoff := process.Duration(4<<min(m.polls, 4)) * m.c.D()
		m.polls++
		fx.Arm(pollTimer, backoff, 2*backoff)
		return
	}
	fx.Arm(aliveTimer, m.queueTime(position), m.queueTime(position))
}

// onTimer is R4b for the poll timer and R7 for the others.
func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	if t != pollTimer {
		m.onSilence(fx)
		return
	}
	fx.Rule(ruleR4b)
	m.ask(fx)
}

// onSilence is R7. After it has called for an election the client keeps waiting. The
// takeover will find it; if no takeover comes, it calls for an election again.
func (m *machine) onSilence(fx *process.Effects) {
	fx.Disarm(aliveTimer)
	fx.Disarm(pollTimer)
	if !m.retried {
		fx.Rule(ruleR7)
		m.retried = true
		m.ask(fx)
		return
	}
	fx.Rule(ruleR7b)
	m.retried = false
	fx.Arm(aliveTimer, m.queueTime(m.c.N), m.queueTime(m.c.N))
	fx.Campaign()
}

// onRelease is R5. During a takeover the exit is held back (T2): the process was
// reported inside, and if the old coordinator heard of the exit it could let a second
// process in.
func (m *machine) onRelease(fx *process.Effects) {
	if m.phase != inside {
		return
	}
	fx.Rule(ruleR5)
	m.phase = idle
	if m.promised > m.term {
		m.owed = m.rid
		return
	}
	m.tell(release, m.rid, fx)
}

// onCancel withdraws a request. If a grant crosses it, R3b returns the grant.
func (m *machine) onCancel(fx *process.Effects) {
	if m.phase != waiting {
		return
	}
	fx.Rule(ruleR5)
	m.phase = idle
	m.disarm(fx)
	m.tell(cancel, m.rid, fx)
}

// onRestart is a client's part of R9: it has forgotten who coordinates and, if it was
// the coordinator itself, who held.
func (m *machine) onRestart(fx *process.Effects) {
	fx.Rule(ruleR9)
	m.coordinator, m.term = process.None, 0
	m.floor = m.floor[:0]
	fx.Campaign()
}

func (m *machine) disarm(fx *process.Effects) {
	fx.Disarm(replyTimer)
	if m.mode == denyPoll {
		fx.Disarm(pollTimer)
	} else {
		fx.Disarm(aliveTimer)
	}
}

// replyTime is how long an answer may take. In silent mode the coordinator answers only
// when the whole queue has been served.
func (m *machine) replyTime() process.Duration {
	if m.mode == silent {
		return m.queueTime(m.c.N)
	}
	return 4 * m.c.D()
}

// queueTime is twice the time that a queue with this many requests ahead takes.
func (m *machine) queueTime(ahead int) process.Duration {
	return 2 * process.Duration(ahead+1) * (2*m.c.D() + m.c.E())
}

func (m *machine) hasFailed(p process.ID) bool {
	return slices.Contains(m.failed, p)
}
