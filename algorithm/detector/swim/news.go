package swim

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// belief returns what is known about p.
func (m *machine) belief(p process.ID) belief {
	b := belief{m.starts[p], m.objections[p], alive}
	switch {
	case m.suspects.Has(p):
		b.state = suspected
	case m.dead.Has(p):
		b.state = failed
	}
	return b
}

// overrides reports whether b is newer than o. The order is total, so news may
// arrive in any order and any number of times.
func (b belief) overrides(o belief) bool {
	if b.start != o.start {
		return b.start > o.start
	}
	if b.incarnation != o.incarnation {
		return b.incarnation > o.incarnation
	}
	return b.state > o.state
}

// learn is R4 and R6 for all news in a message.
func (m *machine) learn(msg *process.Message, fx *process.Effects) {
	for i, p := range msg.IDs {
		if 3*i+2 >= len(msg.Vector) {
			return
		}
		b := belief{msg.Vector[3*i], msg.Vector[3*i+1], min(msg.Vector[3*i+2], failed)}
		if p == m.self {
			m.object(b, fx)
		} else if b.overrides(m.belief(p)) {
			fx.Rule(ruleR4)
			m.adopt(p, b, fx)
		}
	}
}

// object is R6. News about an earlier start needs no objection: JOIN has answered it.
func (m *machine) object(b belief, fx *process.Effects) {
	if b.start != m.start || b.state == alive || b.incarnation < m.incarnation {
		return
	}
	fx.Rule(ruleR6)
	m.incarnation = b.incarnation + 1
	m.tell(m.self)
}

// adopt accepts b about p, which is newer than what was known. It announces the change
// and passes the news on. A process that had failed and is alive after all, or again,
// is announced as restarted, because the actions taken because of its failure cannot be
// undone. If this process has itself restarted, the first news of a start of p is not
// announced, unless p was declared failed in the meantime.
func (m *machine) adopt(p process.ID, b belief, fx *process.Effects) {
	was := m.belief(p)
	m.starts[p], m.objections[p] = b.start, b.incarnation
	m.suspects.Remove(p)
	m.dead.Remove(p)
	later := b.start > was.start || b.incarnation > was.incarnation
	restarted := later && (was.state == failed || b.start > was.start && was.start != 0)
	if was.state == suspected {
		fx.Disarm(suspicionTimer.For(p))
	}
	if was.state == suspected && (restarted || b.state == alive) {
		fx.Rule(ruleR4a)
		fx.Trust(p)
	}
	if restarted {
		fx.Rule(ruleR4a)
		fx.Rejoin(p, b.start)
		was.state = alive
	}
	m.condemn(p, was.state, b.state, fx)
	if was.start != 0 || b.state != alive {
		m.tell(p)
	}
}

// condemn puts p into its set, and announces that if it is new. A suspicion of a later
// incarnation has its own timeout.
func (m *machine) condemn(p process.ID, was, is uint64, fx *process.Effects) {
	switch is {
	case suspected:
		m.suspects.Add(p)
		fx.Arm(suspicionTimer.For(p), m.suspicion, m.suspicion)
		if was != suspected {
			fx.Suspect(p)
		}
	case failed:
		m.dead.Add(p)
		if was != failed {
			fx.Fail(p)
		}
	}
}

// tell schedules news about p for sending.
func (m *machine) tell(p process.ID) {
	m.hot = slices.DeleteFunc(m.hot, func(n piece) bool { return n.of == p })
	m.hot = slices.Insert(m.hot, 0, piece{p, m.copies})
}

// send sends a message with the news that has been sent least, and with the news about
// its receiver.
func (m *machine) send(to process.ID, msg process.Message, fx *process.Effects) {
	msg.Value = int64(m.start)
	ids, vector := m.scratchNews[:0], m.scratchVector[:0]
	if m.suspects.Has(to) || m.dead.Has(to) {
		ids, vector = m.write(to, ids, vector)
	}
	for i := 0; i < len(m.hot) && len(ids) < most; i++ {
		if n := &m.hot[i]; n.of != to {
			ids, vector = m.write(n.of, ids, vector)
			n.left--
		}
	}
	msg.IDs, msg.Vector = ids, vector
	m.scratchNews, m.scratchVector = ids, vector
	fx.Send(to, msg)
	m.cool()
}

// write adds what is known about p.
func (m *machine) write(p process.ID, ids []process.ID, vector []uint64) ([]process.ID, []uint64) {
	b := belief{m.start, m.incarnation, alive}
	if p != m.self {
		b = m.belief(p)
	}
	return append(ids, p), append(vector, b.start, b.incarnation, b.state)
}

// cool drops news that was sent often enough, and sorts the rest by how often it was
// sent.
func (m *machine) cool() {
	m.hot = slices.DeleteFunc(m.hot, func(n piece) bool { return n.left <= 0 })
	slices.SortStableFunc(m.hot, func(a, b piece) int { return b.left - a.left })
}

// onJoin is R7a: it sends everything that differs from the initial state.
func (m *machine) onJoin(p process.ID, fx *process.Effects) {
	fx.Rule(ruleR7a)
	ids, vector := m.scratchNews[:0], m.scratchVector[:0]
	for q := range process.ID(m.c.N) {
		if b := m.belief(q); q != p && q != m.self && b != (belief{start: 1}) && b.start != 0 {
			ids, vector = m.write(q, ids, vector)
		}
	}
	ids, vector = m.write(m.self, ids, vector)
	m.scratchNews, m.scratchVector = ids, vector
	fx.Send(p, process.Message{Type: state, Value: int64(m.start), IDs: ids, Vector: vector})
}
