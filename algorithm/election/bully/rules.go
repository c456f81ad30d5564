package bully

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// start is B1. A process that already runs an election, or does not know the round yet,
// does not start one.
func (m *machine) start(fx *process.Effects) {
	if m.phase != idle {
		return
	}
	fx.Rule(ruleB1)
	fx.Disarm(startTimer)
	m.round++
	m.own = m.round
	asked := 0
	for p := range process.ID(m.c.N) {
		if p != m.self && (m.byLoad || m.above(p)) && !m.skips(p) {
			fx.Send(p, m.message(election, process.MakeTerm(m.own, m.self)))
			asked++
		}
	}
	if asked == 0 {
		m.win(fx)
		return
	}
	m.wait(waitOK, m.answerTime, fx)
}

// wait enters a phase for the given time.
func (m *machine) wait(next phase, d process.Duration, fx *process.Effects) {
	m.phase = next
	fx.Arm(phaseTimers[next], d, d)
}

// rest ends a phase.
func (m *machine) rest(fx *process.Effects) {
	if m.phase != idle {
		fx.Disarm(phaseTimers[m.phase])
	}
	m.phase = idle
}

// message makes a message of this process, with its load if that counts.
func (m *machine) message(kind process.Type, t process.Term) process.Message {
	return process.Message{Type: kind, Term: t, Value: m.candidate().Load}
}

// candidate is this process in the comparison.
func (m *machine) candidate() ring.Candidate {
	if !m.byLoad {
		return ring.Candidate{ID: m.self}
	}
	return ring.Candidate{ID: m.self, Load: m.load.In(m.round)}
}

// beats reports whether this process is better than the sender of a message.
func (m *machine) beats(msg *process.Message) bool {
	return m.candidate().Beats(ring.Candidate{ID: msg.From, Load: msg.Value}, m.c)
}

// onElection is B2. Only by load is there an ELECTION from above, which needs no
// answer: by label no process asks those below.
func (m *machine) onElection(msg *process.Message, fx *process.Effects) {
	j, t := msg.From, msg.Term
	switch {
	case !m.beats(msg):
	case m.phase == idle && m.leads() && m.elected.Round() >= t.Round():
		fx.Rule(ruleB2a)
		fx.Send(j, m.message(coordinator, m.elected))
	default:
		fx.Rule(ruleB2)
		fx.Send(j, process.Message{Type: ok, Term: t})
		m.start(fx)
	}
}

// onOK is B3. The answer to an election of an earlier round may come from a process
// that has crashed since.
func (m *machine) onOK(t process.Term, fx *process.Effects) {
	if m.phase != waitOK || t.Round() != m.own {
		return
	}
	fx.Rule(ruleB3)
	m.rest(fx)
	if m.flaw.WaitsForEver {
		m.phase = waitCoordinator
		return
	}
	m.wait(waitCoordinator, m.answerTime+2*m.c.D(), fx)
}

// win is B5. If a later round was seen during this election, the term must be above it.
// Otherwise the processes in that round would ignore it as old.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleB5)
	if m.round > m.own {
		m.round++
	}
	m.phase = idle
	t := process.MakeTerm(m.round, m.self)
	for p := range process.ID(m.c.N) {
		if p != m.self && (m.toAll || !m.above(p)) && !m.skips(p) {
			fx.Send(p, m.message(coordinator, t))
		}
	}
	m.record(t, fx)
}

// record notes the leader and announces it to the layers above.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.leader, m.elected = t.Leader(), t
	fx.Elect(m.leader, m.elected)
}

// onCoordinator is B6 and B7. An announcement of a crashed process is ignored. A
// process that does not know the round yet takes part in nothing.
func (m *machine) onCoordinator(msg *process.Message, fx *process.Effects) {
	j, t := msg.From, msg.Term
	switch {
	case m.hasFailed(j) || m.phase == greeting:
	case m.beats(msg):
		fx.Rule(ruleB7)
		m.start(fx)
	case t < m.elected:
		fx.Rule(ruleB6a)
		m.tellRound(j, fx)
	case m.phase != idle && t.Round() < m.own:
		// It was sent before j got this process's ELECTION, which j will answer.
	default:
		m.accept(t, fx)
	}
}

// accept is B6. The announcement may be a duplicate.
func (m *machine) accept(t process.Term, fx *process.Effects) {
	fx.Rule(ruleB6)
	fx.Disarm(startTimer)
	m.rest(fx)
	if t != m.elected {
		m.record(t, fx)
	}
}

func (m *machine) tellRound(p process.ID, fx *process.Effects) {
	fx.Send(p, process.Message{Type: welcome, Term: process.MakeTerm(m.round, m.self)})
}

// onRestart is B8. If there is no process to ask, this one starts when the layers above
// have restarted too, unless they ask for an election then.
func (m *machine) onRestart(fx *process.Effects) {
	fx.Rule(ruleB8)
	if m.c.N == 1 {
		fx.Arm(startTimer, 1, 1)
		return
	}
	m.awaiting = m.awaiting[:0]
	for p := range process.ID(m.c.N) {
		if p != m.self {
			m.awaiting = append(m.awaiting, p)
		}
	}
	fx.Broadcast(process.Message{Type: hello})
	m.wait(greeting, m.answerTime, fx)
}

// onHello is B8a. A process that sends HELLO is alive, whatever was known of it.
func (m *machine) onHello(p process.ID, fx *process.Effects) {
	fx.Rule(ruleB8a)
	m.forgive(p)
	m.tellRound(p, fx)
}

// onWelcome collects the rounds of the others, or is B8c.
func (m *machine) onWelcome(p process.ID, t process.Term, fx *process.Effects) {
	switch {
	case m.phase == greeting:
		m.strike(p, fx)
	case m.leads() && t.Round() >= m.elected.Round():
		fx.Rule(ruleB8c)
		m.start(fx)
	}
}

// strike stops waiting for the WELCOME of p.
func (m *machine) strike(p process.ID, fx *process.Effects) {
	m.awaiting = process.Remove(m.awaiting, p)
	if len(m.awaiting) == 0 {
		m.greeted(fx)
	}
}

// greeted is B8b. If this process has the highest label, B1 makes it leader at once.
func (m *machine) greeted(fx *process.Effects) {
	fx.Rule(ruleB8b)
	m.awaiting = m.awaiting[:0]
	m.rest(fx)
	m.start(fx)
}

// onFail notes that p has crashed.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	m.failed = process.Insert(m.failed, p)
	if m.phase == greeting {
		m.strike(p, fx)
		return
	}
	m.onGone(p, fx)
}

// onGone is B9. The layers above hear of it in the same moment and may ask for an
// election themselves. They go first, so that there are not two elections.
func (m *machine) onGone(p process.ID, fx *process.Effects) {
	if m.phase == idle && p == m.leader {
		fx.Rule(ruleB9)
		fx.Arm(startTimer, 1, max(1, m.stagger))
	}
}

// onTrust withdraws a suspicion of p.
func (m *machine) onTrust(p process.ID, fx *process.Effects) {
	if p == m.leader {
		fx.Disarm(startTimer)
	}
	if m.leads() && (m.byLoad || m.above(p)) {
		fx.Rule(ruleB9a)
		m.start(fx)
	}
}

func (m *machine) forgive(p process.ID) {
	m.failed = process.Remove(m.failed, p)
}

func (m *machine) hasFailed(p process.ID) bool { return slices.Contains(m.failed, p) }

// skips reports whether messages to p are useless.
func (m *machine) skips(p process.ID) bool { return m.skipFailed && m.hasFailed(p) }

// above reports whether p has a higher label than this process.
func (m *machine) above(p process.ID) bool { return m.c.Above(p, m.self) }

func (m *machine) leads() bool { return m.leader == m.self }
