package host

import (
	"github.com/conclave-io/conclave/algorithm/view"
	"github.com/conclave-io/conclave/process"
)

// opening is when the epoch began here, how long the last one took to open, in ns, and how many have
// opened.
type opening struct {
	began, paused int64
	opened        uint64
}

// reset discards the instances with the seat (S5).
func (m *machines) reset() {
	clear(m.names)
	m.local = list{}
	m.prefixes, m.todo, m.alarms = nil, nil, nil
}

// begin is M1: the epoch begins without machines and timers. What clients hold or wait for stays.
func (m *machines) begin(l *view.Log) {
	m.prefixes = nil
	for i := range l.Guards {
		if g := &l.Guards[i]; g.Use.Guarded() && !g.New {
			m.prefixes = append(m.prefixes, m.newPrefix(g, l.Coordinator))
		} else if !g.New {
			m.prefixes = append(m.prefixes, &guardedPrefix{prefix: g.Prefix})
		}
	}
	m.alarms, m.opening.began = m.alarms[:0], m.now
	for _, in := range m.todo {
		in.listed = false
	}
	m.todo = m.todo[:0]
	clear(m.names)
	for in := m.local.first; in != nil; in = in.next {
		m.names[in.name] = in
	}
}

// lookAgain queues all names for processing that clients of this server hold or wait for.
func (m *machines) lookAgain() {
	for in := m.local.first; in != nil; in = in.next {
		m.guards.count(in) // a hold that was taken over counts although no machine was asked
		m.later(in)
	}
}

// recount is lookAgain when the guards have changed: none of them has counted a name yet.
func (m *machines) recount() {
	for in := m.local.first; in != nil; in = in.next {
		in.busy = false
	}
	m.lookAgain()
}

// later queues a name for processing when there is time and room.
func (m *machines) later(in *instance) {
	if !in.listed {
		in.listed = true
		m.todo = append(m.todo, in)
	}
}

// atATime is the number of names processed before the caller gets its turn.
const atATime = 1000

// work processes some of the queued names (M2, M4), while no link is over half full
// (L5).
func (m *machines) work() {
	for done := 0; len(m.todo) > 0 && done < atATime && !m.links.crowded(); done++ {
		in := m.todo[0]
		m.todo = m.todo[1:]
		if in.listed = false; m.names[in.name] == in {
			m.attend(in)
		}
		if len(m.todo) == 0 {
			m.advance()
		}
	}
	m.advance()
}

// advance goes as far as the member can: it sends RESUMED when all holds have been entered again
// (M3), and asks for wanted names when all members have sent it (M4).
func (m *machines) advance() {
	if m.member.State == view.Resuming && len(m.todo) == 0 {
		m.member.Begun = true
	}
	resumes, opens := m.member.Advance()
	if resumes {
		for to := range process.ID(len(m.member.Members)) {
			if to != m.member.Rank() {
				m.links.send(to, &frame{kind: frameResumed})
			}
		}
	}
	if opens {
		m.opening.paused, m.opening.opened = m.now-m.opening.began, m.opening.opened+1
		m.lookAgain()
	}
}
