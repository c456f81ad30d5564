package central

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// serves reports whether this process is the coordinator of the given term and
// has not promised to obey a later one.
func (m *machine) serves(t process.Term) bool {
	return m.coordinator == m.self && !m.taking && t == m.term && m.promised == m.term
}

// coordinate handles a client's message, which may come from this process itself.
func (m *machine) coordinate(c process.ID, t process.Type, rid uint64, fx *process.Effects) {
	if t == request {
		m.onRequest(entry{c, rid}, fx)
		return
	}
	m.onEnd(entry{c, rid}, fx)
}

// onRequest is R2.
func (m *machine) onRequest(e entry, fx *process.Effects) {
	position := slices.Index(m.queue, e) + 1
	switch {
	case e == m.holder:
		fx.Rule(ruleR2a)
		m.grant(fx)
	case position > 0:
		fx.Rule(ruleR2b)
		m.deny(e, position, fx)
	case e.rid < m.floor[e.id]:
		fx.Rule(ruleR2c)
	case m.free(e.id):
		fx.Rule(ruleR2d)
		m.floor[e.id] = e.rid
		m.hold(e, fx)
	default:
		fx.Rule(ruleR2e)
		m.enqueue(e, fx)
	}
}

// free reports whether c may hold now.
func (m *machine) free(c process.ID) bool {
	return m.holder.id == process.None || m.flaw.OwnFirst && c == m.self
}

// enqueue is the rest of R2e. A client has one request at a time, so a newer one
// replaces an older one whose CANCEL is still in flight. It does not replace the
// holder: the holder's RELEASE may be in flight, but so may its GRANTED.
func (m *machine) enqueue(e entry, fx *process.Effects) {
	m.floor[e.id] = e.rid
	m.strike(e.id)
	position := 0
	if m.mode != denyPoll {
		m.queue = append(m.queue, e)
		position = len(m.queue)
	}
	m.deny(e, position, fx)
}

// onEnd is R6, for RELEASE and CANCEL. The request is over even if it never arrived: on
// a link that reorders messages, its REQUEST may still come.
func (m *machine) onEnd(e entry, fx *process.Effects) {
	fx.Rule(ruleR6)
	m.floor[e.id] = max(m.floor[e.id], e.rid+1)
	m.queue = slices.DeleteFunc(m.queue, func(q entry) bool { return q == e })
	if m.ends(e) {
		m.pass(fx)
	}
}

// ends reports whether the ended request is that of the present entry.
func (m *machine) ends(e entry) bool {
	return m.holder == e || m.flaw.UnnumberedEnding && m.holder.id == e.id
}

// pass makes the head of the queue the holder, if there is one.
func (m *machine) pass(fx *process.Effects) {
	if len(m.queue) == 0 {
		m.holder, m.held = entry{id: process.None}, 0
		return
	}
	next := m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	m.hold(next, fx)
}

func (m *machine) hold(e entry, fx *process.Effects) {
	m.count = m.count.Next(m.term.Round())
	m.holder, m.held = e, m.count
	m.grant(fx)
}

// grant tells the holder that it may enter.
func (m *machine) grant(fx *process.Effects) {
	if m.holder.id != m.self {
		fx.Send(m.holder.id, process.Message{Type: granted, Seq: m.holder.rid, Fence: m.held, Term: m.term})
		return
	}
	if m.phase == waiting && m.holder.rid == m.rid {
		m.enter(m.held, fx)
		return
	}
	fx.Rule(ruleR3b)
	m.onEnd(m.holder, fx)
}

func (m *machine) deny(e entry, position int, fx *process.Effects) {
	switch {
	case m.mode == silent:
	case e.id != m.self:
		fx.Send(e.id, process.Message{Type: denied, Seq: e.rid, Value: int64(position), Term: m.term})
	default:
		m.denyLocally(position, fx)
	}
}

// denyLocally is R4 at a coordinator that is its own client. It needs no sign of life
// from itself, but it must repeat its polls.
func (m *machine) denyLocally(position int, fx *process.Effects) {
	fx.Rule(ruleR4)
	if m.mode == denyPoll {
		m.await(position, fx)
	}
	fx.Deny(position)
}

// strike removes a client from the queue.
func (m *machine) strike(c process.ID) {
	m.queue = slices.DeleteFunc(m.queue, func(q entry) bool { return q.id == c })
}

// onFail is R8 at the coordinator and R9 at its clients. A takeover does not wait for
// crashed processes.
func (m *machine) onFail(p process.ID, fx *process.Effects) {
	m.failed = process.Insert(m.failed, p)
	switch {
	case m.taking:
		m.forget(p)
		m.answered(p, fx)
	case m.serves(m.term):
		m.purge(p, fx)
	case p == m.coordinator || p == m.promised.Leader():
		fx.Rule(ruleR9)
		fx.Campaign()
	}
}

// purge is R8: the requests of p are over, and so is its critical section.
func (m *machine) purge(p process.ID, fx *process.Effects) {
	fx.Rule(ruleR8)
	m.strike(p)
	if m.holder.id == p {
		m.pass(fx)
	}
}

// onRejoin resets what is known of a process that is back: it has forgotten its
// requests and their numbers.
func (m *machine) onRejoin(p process.ID, fx *process.Effects) {
	m.failed = process.Remove(m.failed, p)
	switch {
	case m.taking:
		m.forget(p)
		m.floor[p] = 0
		m.inquire(p, fx)
	case m.serves(m.term):
		m.purge(p, fx)
		m.floor[p] = 0
	}
}
