package changroberts

import (
	"github.com/conclave-io/conclave/algorithm/election/ring"
	"github.com/conclave-io/conclave/process"
)

// start is C1.
func (m *machine) start(fx *process.Effects) {
	if m.participant {
		return
	}
	fx.Rule(ruleC1)
	m.see(m.round+1, fx)
	m.nominate(fx)
}

// nominate sends this process's label round the ring.
func (m *machine) nominate(fx *process.Effects) {
	m.join(fx)
	if !m.pass(m.message(election), fx) {
		m.win(fx)
	}
}

// message makes a message that names this process.
func (m *machine) message(t process.Type) process.Message {
	return process.Message{Type: t, Subject: m.self, Term: process.MakeTerm(m.round, m.self), Value: m.candidate().Load}
}

// onElection is C2 and C3.
func (m *machine) onElection(msg *process.Message, fx *process.Effects) {
	r := msg.Term.Round()
	switch {
	case r < m.round || r <= m.elected.Round():
		fx.Rule(ruleC2c)
		m.bring(r, fx)
	case msg.Subject == m.self && m.participant:
		m.win(fx)
	case msg.Subject == m.self:
		fx.Rule(ruleC2c)
	case !m.beats(msg):
		fx.Rule(ruleC2)
		m.join(fx)
		m.forward(msg, fx)
	case !m.participant:
		fx.Rule(ruleC2a)
		m.nominate(fx)
	default:
		fx.Rule(ruleC2b)
	}
}

// bring is C8 for an ELECTION of an old round: its sender must hear of a later one.
func (m *machine) bring(round uint64, fx *process.Effects) {
	if m.repair && round < m.round {
		m.restart(fx)
	}
}

// restart is start, with the rule that it answers another process.
func (m *machine) restart(fx *process.Effects) {
	if !m.participant {
		fx.Rule(ruleC8)
		m.start(fx)
	}
}

// forward passes a message on. If the owner of its label is down, no process would ever
// stop it.
func (m *machine) forward(msg *process.Message, fx *process.Effects) {
	if !m.pass(*msg, fx) {
		m.anew(ruleC6, fx)
	}
}

// anew gives up this election and starts another.
func (m *machine) anew(why process.Rule, fx *process.Effects) {
	fx.Rule(why)
	m.leave(fx)
	m.start(fx)
}

// win is C3.
func (m *machine) win(fx *process.Effects) {
	fx.Rule(ruleC3)
	m.leave(fx)
	msg := m.message(elected)
	m.record(msg.Term, fx)
	m.pass(msg, fx)
}

// record notes the leader and announces it.
func (m *machine) record(t process.Term, fx *process.Effects) {
	m.leader, m.elected = t.Leader(), t
	fx.Elect(m.leader, t)
}

// onElected is C4.
func (m *machine) onElected(msg *process.Message, fx *process.Effects) {
	switch {
	case msg.Subject == m.self || msg.Term == m.elected:
		fx.Rule(ruleC4a)
	case msg.Term < m.elected:
		fx.Rule(ruleC4a)
		if m.repair && msg.Subject != m.leader {
			m.restart(fx)
		}
	case m.repair && m.beats(msg):
		m.restart(fx)
	default:
		m.follow(msg, fx)
	}
}

// follow is C4. A participant of a later round waits for that round's result.
func (m *machine) follow(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleC4)
	if msg.Term.Round() == m.round {
		m.leave(fx)
	}
	m.record(msg.Term, fx)
	m.forward(msg, fx)
}

// onTimer is C5 and C7.
func (m *machine) onTimer(t process.Timer, fx *process.Effects) {
	if t == resultTimer {
		m.anew(ruleC7, fx)
		return
	}
	fx.Rule(ruleC5)
	m.afterLoss(m.box.OnSilence(&m.hand, t.Peer(), fx), fx)
}

// afterLoss handles that a process was passed over. One start is enough, however many
// messages cannot be passed on.
func (m *machine) afterLoss(loss ring.Loss, fx *process.Effects) {
	before := m.round
	for i := range loss.Stuck {
		m.onStuck(&loss.Stuck[i].Message, fx)
	}
	if m.round == before && lostWinner(&loss) {
		m.anew(ruleC6, fx)
	}
}

// onStuck is C6, or C3 if no other process is left.
func (m *machine) onStuck(msg *process.Message, fx *process.Effects) {
	switch {
	case msg.Subject == m.self && msg.Type == election && m.participant && msg.Term.Round() == m.round:
		m.win(fx)
	case msg.Subject != m.self && msg.Term.Round() == m.round:
		m.anew(ruleC6, fx)
	}
}

// onNews is C8, and handles reports of a detector below.
func (m *machine) onNews(ev *process.Event, fx *process.Effects) {
	switch ev.Kind {
	case process.Restart:
		m.restart(fx)
	case process.Fail:
		m.afterLoss(m.box.OnFail(&m.hand, ev.Peer, fx), fx)
		m.onGone(ev.Peer, fx)
	case process.Suspect:
		m.onGone(ev.Peer, fx)
	case process.Rejoin:
		m.box.OnRejoin(&m.hand, ev.Peer, fx)
	case process.Trust:
		m.box.Heard(ev.Peer)
	}
}

func (m *machine) onGone(p process.ID, fx *process.Effects) {
	if p == m.leader {
		m.restart(fx)
	}
}
