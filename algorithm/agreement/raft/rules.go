package raft

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// wait sets the timer of R1 to a random time in a range, so that one process becomes a
// candidate before the others.
func (m *machine) wait(fx *process.Effects) { fx.Arm(electionTimer, m.election, 2*m.election) }

// enter is R7. A process saves a term as soon as it sees it, so it never votes in it
// twice.
func (m *machine) enter(term uint64, fx *process.Effects) {
	if m.role == leading {
		fx.Disarm(heartbeatTimer)
		m.wait(fx)
	}
	m.term, m.votedFor, m.role, m.leader = term, process.None, follower, process.None
	m.votes.Clear()
	clear(m.next)
	clear(m.match)
	fx.Save()
}

// stand is R2.
func (m *machine) stand(fx *process.Effects) {
	fx.Rule(ruleR2)
	m.enter(m.term+1, fx)
	m.role, m.votedFor = candidate, m.self
	m.votes.Add(m.self)
	m.wait(fx)
	fx.Save()
	fx.Broadcast(process.Message{Type: askVote, Term: m.stamp(), Seq: m.last(), Clock: m.termAt(m.last())})
	m.countVotes(fx)
}

// stamp is the term as it appears in messages.
func (m *machine) stamp() process.Term { return process.MakeTerm(m.term, m.self) }

// last is the position of the last entry, and 0 for an empty log.
func (m *machine) last() uint64 { return uint64(len(m.terms)) }

func (m *machine) termAt(position uint64) uint64 {
	if position == 0 {
		return 0
	}
	return m.terms[position-1]
}

// onAskVote is R3.
func (m *machine) onAskVote(msg *process.Message, fx *process.Effects) {
	free := m.votedFor == process.None || m.votedFor == msg.From || m.flaw.VotesTwice
	newer := m.termAt(m.last()) > msg.Clock || m.termAt(m.last()) == msg.Clock && m.last() > msg.Seq
	if msg.Term.Round() < m.term || !free || newer && !m.flaw.IgnoresLogs {
		fx.Rule(ruleR3a)
		fx.Send(msg.From, process.Message{Type: vote, Term: m.stamp(), Value: no})
		return
	}
	fx.Rule(ruleR3)
	m.votedFor = msg.From
	m.wait(fx)
	fx.Save()
	fx.Send(msg.From, process.Message{Type: vote, Term: m.stamp(), Value: yes})
}

func (m *machine) onVote(msg *process.Message, fx *process.Effects) {
	if m.role == candidate && msg.Term.Round() == m.term && msg.Value == yes {
		m.votes.Add(msg.From)
		m.countVotes(fx)
	}
}

// countVotes is R4.
func (m *machine) countVotes(fx *process.Effects) {
	if 2*m.votes.Len() <= m.c.N {
		return
	}
	fx.Rule(ruleR4)
	m.role, m.leader = leading, m.self
	m.votes.Clear()
	for p := range m.next {
		m.next[p], m.match[p] = m.last()+1, 0
	}
	fx.Disarm(electionTimer)
	fx.Elect(m.self, m.stamp())
	m.appendPending(fx)
	m.sendAll(fx)
	m.advance(fx)
}

// appendPending appends this process's own proposals to its log.
func (m *machine) appendPending(fx *process.Effects) {
	for _, v := range m.pending {
		m.put(v, fx)
	}
}

// propose is R8.
func (m *machine) propose(v uint64, fx *process.Effects) {
	if slices.Contains(m.pending, v) || slices.Contains(m.values[:m.commit], v) {
		return
	}
	m.pending = append(m.pending, v)
	if m.role != leading {
		m.ask(v, fx)
		return
	}
	m.append(v, fx)
}

// ask is R8a.
func (m *machine) ask(v uint64, fx *process.Effects) {
	if m.leader != process.None {
		fx.Rule(ruleR8a)
		fx.Send(m.leader, process.Message{Type: propose, Value: int64(v)})
	}
}

// append is R8 at the leader. A process that leads no more does not answer: the sender
// asks again.
func (m *machine) append(v uint64, fx *process.Effects) {
	if m.role == leading && m.put(v, fx) {
		m.sendAll(fx)
		m.advance(fx)
	}
}

// holds reports whether this log will commit a value: it has committed it, or it has an
// entry of this term for it. An entry of an older term alone may never be committed.
func (m *machine) holds(v uint64) bool {
	for i, other := range m.values {
		if other == v && (uint64(i) < m.commit || m.terms[i] == m.term) {
			return true
		}
	}
	return false
}

// put appends a value that the log does not hold.
func (m *machine) put(v uint64, fx *process.Effects) bool {
	if m.holds(v) {
		return false
	}
	fx.Rule(ruleR8)
	m.terms, m.values = append(m.terms, m.term), append(m.values, v)
	fx.Save()
	return true
}

// sendAll sends to every follower the entries that it lacks, as far as this leader
// knows, or a heartbeat if it lacks none.
func (m *machine) sendAll(fx *process.Effects) {
	fx.Arm(heartbeatTimer, m.heartbeat, m.heartbeat)
	for p := range process.ID(m.c.N) {
		if p != m.self {
			m.send(p, fx)
		}
	}
}

func (m *machine) send(p process.ID, fx *process.Effects) {
	prev := m.next[p] - 1
	m.scratch = m.scratch[:0]
	for i := prev; i < m.last(); i++ {
		m.scratch = append(m.scratch, m.terms[i], m.values[i])
	}
	fx.Send(p, process.Message{
		Type: appendEntries, Term: m.stamp(), Seq: prev, Clock: m.termAt(prev), Vector: m.scratch, Value: int64(m.commit),
	})
}

// onAppend is R5.
func (m *machine) onAppend(msg *process.Message, fx *process.Effects) {
	if msg.Term.Round() < m.term {
		fx.Rule(ruleR7a)
		fx.Send(msg.From, process.Message{Type: answer, Term: m.stamp(), Value: no})
		return
	}
	m.follow(msg.From, fx)
	prev := msg.Seq
	if prev > m.last() || m.termAt(prev) != msg.Clock {
		fx.Rule(ruleR5a)
		fx.Send(msg.From, process.Message{Type: answer, Term: m.stamp(), Value: no, Seq: min(prev-1, m.last())})
		return
	}
	fx.Rule(ruleR5)
	m.store(prev, msg.Vector, fx)
	has := prev + uint64(len(msg.Vector))/2
	fx.Send(msg.From, process.Message{Type: answer, Term: m.stamp(), Value: yes, Seq: has})
	m.decide(min(uint64(msg.Value), has), fx)
	for _, v := range m.pending {
		if !m.holds(v) {
			m.ask(v, fx)
		}
	}
}

// follow notes the leader of the term and restarts the wait.
func (m *machine) follow(leader process.ID, fx *process.Effects) {
	m.role = follower
	m.votes.Clear()
	m.wait(fx)
	if m.leader != leader {
		m.leader = leader
		fx.Elect(leader, process.MakeTerm(m.term, leader))
	}
}

// store puts entries behind position prev. It keeps entries that are equal: a message
// may be older than what came after it.
func (m *machine) store(prev uint64, entries []uint64, fx *process.Effects) {
	at, changed := prev, false
	for i := 0; i < len(entries); i += 2 {
		if at < m.last() && m.terms[at] != entries[i] {
			m.terms, m.values = m.terms[:at], m.values[:at]
		}
		if at == m.last() {
			m.terms, m.values = append(m.terms, entries[i]), append(m.values, entries[i+1])
			changed = true
		}
		at++
	}
	if changed {
		fx.Save()
	}
}

// onAnswer is R6 and R6a.
func (m *machine) onAnswer(msg *process.Message, fx *process.Effects) {
	p := msg.From
	if m.role != leading || msg.Term.Round() != m.term {
		return
	}
	if msg.Value == no {
		fx.Rule(ruleR6a)
		m.next[p] = max(m.match[p]+1, min(m.next[p]-1, msg.Seq+1))
		m.send(p, fx)
		return
	}
	m.match[p] = max(m.match[p], msg.Seq)
	m.next[p] = m.match[p] + 1
	m.advance(fx)
}

// advance is R6: it commits the entries that a majority has, up to an entry of this
// term.
func (m *machine) advance(fx *process.Effects) {
	for n := m.last(); n > m.commit && (m.terms[n-1] == m.term || m.flaw.CommitsOldTerms); n-- {
		have := 1
		for p, match := range m.match {
			if process.ID(p) != m.self && match >= n {
				have++
			}
		}
		if 2*have > m.c.N {
			fx.Rule(ruleR6)
			m.decide(n, fx)
			m.sendAll(fx)
			return
		}
	}
}

// decide decides the entries up to a position. A value that occurs in the log twice
// counts where it first occurs.
func (m *machine) decide(upTo uint64, fx *process.Effects) {
	for ; m.commit < upTo; m.commit++ {
		v := m.values[m.commit]
		if !slices.Contains(m.values[:m.commit], v) {
			fx.Decide(int64(v))
		}
		m.pending = slices.DeleteFunc(m.pending, func(p uint64) bool { return p == v })
	}
}
