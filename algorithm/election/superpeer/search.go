package superpeer

import "github.com/conclave-io/conclave/process"

// maxFollows is the number of redirections after which a search waits for the others to
// settle.
const maxFollows = 3

// startJoin is R1: the local test, then the lookup.
func (m *machine) startJoin(fx *process.Effects) {
	m.role = int(searching)
	if m.ring.first(m.self, m.depth) {
		m.become(fx)
		return
	}
	m.armCheck(fx)
	m.search(join, fx)
}

// search looks for the node that is responsible for the start of the segment. The first
// step uses this node's own table.
func (m *machine) search(what purpose, fx *process.Effects) {
	fx.Rule(ruleR1)
	m.purpose, m.follows = int(what), 0
	m.at, m.dead = m.self, process.None
	m.try(m.ring.next(m.self, m.key(), process.None), fx)
}

// key is the start of the segment that is searched.
func (m *machine) key() uint64 {
	if m.about(merge) {
		return m.ring.start(m.self, m.depth-1)
	}
	return m.ring.start(m.self, m.depth)
}

// try asks p, the best node that the current node of the search can name. It asks for
// the next node if p is before the key, and otherwise to become a client of p. The
// search moves forward; when it reaches this node itself, no node before it answers.
func (m *machine) try(p process.ID, fx *process.Effects) {
	switch {
	case p == m.self:
		m.onFirst(fx)
	case m.ring.way(m.at, m.key()) > m.ring.to(m.at, p):
		m.askWay(p, process.None, fx)
	default:
		m.askPlace(p, fx)
	}
}

func (m *machine) askWay(p, dead process.ID, fx *process.Effects) {
	m.open(p, true, fx)
	k := m.depth
	if m.about(merge) {
		k--
	}
	fx.Send(p, process.Message{Type: findType, Seq: m.attempt, Value: int64(k), Subject: dead})
}

// askPlace is R4, or the question of R11.
func (m *machine) askPlace(p process.ID, fx *process.Effects) {
	m.open(p, false, fx)
	if m.about(merge) {
		fx.Rule(ruleR11)
		fx.Send(p, process.Message{Type: mergeType, Seq: m.attempt, Value: int64(m.depth), IDs: m.clients})
		return
	}
	fx.Rule(ruleR4)
	fx.Send(p, process.Message{Type: attachType, Seq: m.attempt, Value: int64(m.depth)})
}

func (m *machine) ping(fx *process.Effects) {
	m.purpose = int(renew)
	m.open(m.sp, false, fx)
	fx.Send(m.sp, process.Message{Type: pingType, Seq: m.attempt, Value: int64(m.depth)})
}

func (m *machine) open(p process.ID, find bool, fx *process.Effects) {
	m.attempt++
	m.asked, m.find = p, find
	fx.Arm(answerTimer, m.answer, m.answer)
}

func (m *machine) closeQuestion() {
	m.purpose, m.asked, m.find = int(nothing), process.None, false
	m.at, m.dead, m.follows = process.None, process.None, 0
}

// onFirst handles that the first node before this one in the segment is down.
func (m *machine) onFirst(fx *process.Effects) {
	switch purpose(m.purpose) {
	case join:
		m.become(fx)
	case merge:
		m.closeQuestion()
		if m.ring.start(m.self, m.depth) != m.ring.start(m.self, m.depth-1) {
			fx.Rule(ruleR11)
			m.depth-- // no live node is in the other half, which comes before
		}
	default:
		m.closeQuestion()
		if m.depth > m.base && len(m.clients) <= m.cap/2 {
			m.seekMerge(fx)
		}
	}
}

// seekMerge is R11: a segment with few nodes is joined with the one beside it. The
// first node of both asks no one; the other one asks it.
func (m *machine) seekMerge(fx *process.Effects) {
	if m.ring.first(m.self, m.depth-1) {
		m.purpose = int(merge)
		m.onFirst(fx)
		return
	}
	m.search(merge, fx)
}

// onFind is R2. Any node knows the path to any key.
func (m *machine) onFind(msg *process.Message, fx *process.Effects) {
	fx.Rule(ruleR2)
	k := min(max(int(msg.Value), 0), m.ring.bits)
	next := m.ring.next(m.self, m.ring.start(msg.From, k), msg.Subject)
	fx.Send(msg.From, process.Message{Type: nextType, Seq: msg.Seq, Subject: next})
}

// onAnswer continues after the answer to the open question.
func (m *machine) onAnswer(msg *process.Message, fx *process.Effects) {
	if m.find != (msg.Type == nextType) {
		return
	}
	fx.Disarm(answerTimer)
	switch {
	case msg.Type == nextType:
		if m.at != msg.From {
			m.at, m.dead = msg.From, process.None
		}
		m.try(msg.Subject, fx)
	case msg.Type == busyType && m.is(client):
		m.closeQuestion()
		m.role = int(searching)
		m.armCheck(fx)
	case msg.Type == busyType:
		m.closeQuestion()
	default:
		m.adopt(msg.From, int(msg.Value), fx)
	}
}

// onSilence handles that the node that was asked does not answer.
func (m *machine) onSilence(fx *process.Effects) {
	asked := m.asked
	switch {
	case m.about(renew):
		m.onMissed(fx)
	case m.follows > 0 || asked == m.at:
		m.closeQuestion() // the next check begins again
	default:
		fx.Rule(ruleR2a)
		m.dead = asked
		if m.at == m.self {
			m.try(m.ring.next(m.self, m.key(), asked), fx)
			return
		}
		m.askWay(m.at, asked, fx)
	}
}

// onMissed gives the super-peer a second chance, and then gives up.
func (m *machine) onMissed(fx *process.Effects) {
	if m.missed++; m.missed < 2 {
		m.ping(fx)
		return
	}
	m.lose(fx)
}

// lose is R6: the super-peer has failed. The announced one stays until another has
// replaced it.
func (m *machine) lose(fx *process.Effects) {
	fx.Rule(ruleR6)
	m.closeQuestion()
	m.missed = 0
	m.startJoin(fx)
}

// onRedirect goes to the node that the asked node, or the super-peer that steps down,
// names.
func (m *machine) onRedirect(msg *process.Message, fx *process.Effects) {
	told := msg.Seq == 0 && m.is(client) && msg.From == m.sp
	answered := msg.Seq != 0 && msg.Seq == m.attempt && msg.From == m.asked && !m.find
	if !told && !answered {
		return
	}
	if told || m.about(renew) {
		m.role, m.depth, m.purpose, m.follows = int(searching), int(msg.Value), int(join), 0
		m.armCheck(fx)
	}
	m.follows++
	switch {
	case msg.Subject == m.self && m.about(join):
		m.become(fx)
	case msg.Subject == m.self || m.follows > maxFollows:
		m.closeQuestion()
		fx.Disarm(answerTimer)
	default:
		m.askPlace(msg.Subject, fx)
	}
}

// onSplit is the second half of R10: the segment has become narrower.
func (m *machine) onSplit(msg *process.Message, fx *process.Effects) {
	told := msg.Seq == 0 && m.is(client) && msg.From == m.sp
	answered := msg.Seq != 0 && msg.Seq == m.attempt && msg.From == m.asked && !m.find
	if !told && !answered {
		return
	}
	fx.Disarm(answerTimer)
	m.closeQuestion()
	if m.is(super) {
		for m.depth < int(msg.Value) {
			m.narrow(fx)
		}
		return
	}
	m.depth = int(msg.Value)
	m.startJoin(fx)
}
