package leasemodel

import (
	"fmt"
	"slices"
)

// The log of a run that is followed: verdicts, and what becomes of them.

// Propose is a leader that puts an entry into its log.
func (r *Run) Propose(id, term, index, mark uint64, reading int64, entries []Entry) error {
	h := r.host(id)
	if !h.leads() || uint64(h.term) != term {
		return fmt.Errorf("server %d, which is %s in term %d, proposes in term %d", id, roleNames[h.role], h.term, term)
	}
	for i := range entries {
		if err := r.propose(h, &entries[i], reading); err != nil {
			return err
		}
	}
	*r.log.put(position{index, mark}) = &proposed{term, entries}
	return nil
}

func (r *Run) propose(h *host, e *Entry, reading int64) error {
	x := e.Session
	if x.over || e.Op == Closes {
		return nil
	}
	if e.Op == Opens || e.Op == Renews {
		if e.Number > x.newest {
			return forbidden(ruleArrive, "server %d proposes renewal %d, which nobody has sent", h.id, e.Number)
		}
		return nil
	}
	m := h.of(x)
	switch {
	case h.ready() && m == nil:
		return nil // the session has ended since the verdict was passed
	case !h.ready():
		return fmt.Errorf("server %d, which is %s, passes the verdict %q", h.id, roleNames[h.role], opNames[e.Op])
	case e.Term != uint64(h.term):
		return fmt.Errorf("server %d proposes in term %d the verdict %q of term %d", h.id, h.term, opNames[e.Op], e.Term)
	}
	m.pass(reading)
	switch e.Op {
	case Drops:
		return r.drop(h, m, e)
	case Expires:
		return r.expire(h, m, e)
	}
	return r.silence(h, x, m, e)
}

func (r *Run) drop(h *host, m *measure, e *Entry) error {
	if o := m.ousters.get(e.Number); !o.due() {
		return forbidden(ruleDrop, "server %d drops hold %d, which was not revoked a TTL ago", h.id, e.Number)
	}
	r.count(ruleDrop)
	return nil
}

func (r *Run) expire(h *host, m *measure, e *Entry) error {
	decided := m.state == expiring && m.decided
	m.decided = false
	switch {
	case decided:
	case e.Renewals != m.renewed:
		return nil // it is void: a renewal went into the log before
	case !m.mayExpire():
		return forbidden(ruleExpire, "server %d proposes that a session expires, which is %s and has %d ns left", h.id, leaseNames[m.state], m.left)
	}
	m.state = expiring
	r.count(ruleExpire)
	return nil
}

// silence may come into the log after it was decided, if that had no room: then the
// session had left more than it has. An expiry may have been decided meanwhile, which
// comes into the log behind it.
func (r *Run) silence(h *host, x *Session, m *measure, e *Entry) error {
	decided := m.state == silent && m.decided
	behind := m.state == expiring && m.decided
	then := m.lease
	then.left = int(e.Value)
	if behind {
		then.state = silent
		if m.said == 0 {
			then.state = renewed
		}
	}
	m.decided = behind
	switch {
	case decided:
	case e.Renewals != m.renewed:
		return nil
	case e.Value < int64(m.left) || !then.maySilence(int(x.ttl), int(m.said)):
		return forbidden(ruleSilence, "server %d puts on record that a session has %d ns left, which is %s and has %d", h.id, e.Value, leaseNames[m.state], m.left)
	}
	if m.said = e.Value; !behind {
		m.state = silent
	}
	r.count(ruleSilence)
	return nil
}

// Store is a server that tells a leader that it has the log up to an index.
func (r *Run) Store(id, leader, term, index uint64, counted bool) error {
	h, l := r.host(id), r.host(leader)
	if counted && !h.server.votes() {
		return forbidden(ruleReplicate, "server %d, which lost its data, takes entries of server %d, which counts on it", id, leader)
	}
	if l.leads() && uint64(l.term) == term {
		stored := l.stored.put(id)
		*stored = max(*stored, index)
	}
	return nil
}

// Commit is a server that applies an entry, before any other. A majority must have it, as
// the leader knows that proposed it, if the server follows that one and it leads still. An
// entry of an earlier leader may have been committed by that one, which has told the server
// and then crashed before it applied the entry itself.
func (r *Run) Commit(id, leader, index, mark uint64, configs ...[]uint64) error {
	e := r.log.get(position{index, mark})
	if e == nil {
		return forbidden(ruleReplicate, "server %d applies an entry at index %d that no leader has proposed", id, index)
	}
	r.log.drop(func(p position) bool { return p.index == index })
	l := r.host(leader)
	has := func(v uint64) bool { return v == leader || l.stored.get(v) >= index }
	if l.leads() && uint64(l.term) == e.term && !majority(configs, has) {
		return forbidden(ruleReplicate, "server %d applies an entry at index %d that no majority of %v has", id, index, configs)
	}
	r.keep(index, e)
	r.count(ruleReplicate)
	for i := range e.entries {
		if err := e.entries[i].commit(e.term, index); err != nil {
			return err
		}
	}
	return nil
}

// keep keeps a committed entry for leaders that apply it later.
func (r *Run) keep(index uint64, e *proposed) {
	if index != r.first+uint64(len(r.committed)) {
		r.first, r.committed = index, nil
	}
	r.committed = append(r.committed, e)
	if n := len(r.committed) - mostKept; n > mostKept {
		r.first += uint64(n)
		r.committed = slices.Clone(r.committed[n:])
	}
}

// commit is one change of a session that is committed.
func (e *Entry) commit(term, index uint64) error {
	x := e.Session
	present := x.as(index)
	verdict := e.Op == Expires || e.Op == Silences
	switch {
	case x.over || e.Op == Drops: // holds are not followed
		return nil
	case e.Op == Closes:
		x.over = true
		return nil
	case verdict && e.Renewals != present.count:
		return nil // it is void: a renewal came before
	}
	made := entry{op: e.Op, term: term, value: uint64(e.Value), verdict: term}
	if verdict {
		made.verdict = e.Term
	}
	next := &state{registry: present.registry, index: index, count: present.count}
	if next.apply(&made, None) {
		next.count = 0 // until a leader shows it
	}
	x.states = append(x.states, next)
	return x.judge()
}

// as returns what the log said of a session as of an index.
func (x *Session) as(index uint64) *state {
	for i := len(x.states) - 1; i > 0; i-- {
		if x.states[i].index <= index {
			return x.states[i]
		}
	}
	return x.states[0]
}

// Apply is a server that applies an entry which is committed.
func (r *Run) Apply(id, index uint64, reading int64) {
	h := r.host(id)
	h.applied = index
	if index < r.first || index >= r.first+uint64(len(r.committed)) || !h.leads() {
		return
	}
	e := r.committed[index-r.first]
	if h.role == elected && e.term == uint64(h.term) {
		r.lead(h, reading)
	}
	for i := range e.entries {
		h.apply(&e.entries[i], reading)
	}
}

// lead starts the leases.
func (r *Run) lead(h *host, reading int64) {
	h.role = leader
	for _, x := range r.sessions {
		if seen := x.as(h.applied); !x.over && seen.status[0] == open {
			m := h.measure(x, reading)
			m.late = 0
			m.lease = inherit(int(x.ttl), seen.remaining[0], true, None)
			m.said = int64(seen.remaining[0])
		}
	}
	r.count(ruleLead)
}

func (h *host) measure(x *Session, reading int64) *measure {
	m := h.of(x)
	if m == nil {
		m = &measure{ttl: int(x.ttl), reading: reading}
		for len(h.measured) <= x.number {
			h.measured = append(h.measured, nil)
		}
		h.measured[x.number] = m
	}
	m.pass(reading)
	return m
}

// of returns what a leader knows of a session, or nil.
func (h *host) of(x *Session) *measure {
	if x.number >= len(h.measured) {
		return nil
	}
	return h.measured[x.number]
}

// pass lets the clock of the leader advance. It goes back when a leader finds out that it
// stood still: then a session has left what it had before, if that was not over for so
// long.
func (m *measure) pass(reading int64) {
	ticks := int(reading - m.reading)
	m.reading = reading
	late := max(0, ticks-m.left)
	if ticks < 0 {
		late = max(ticks, -m.late)
	}
	m.late += late
	m.lease.pass(ticks - late)
	for i := range m.ousters {
		o := &m.ousters[i].value
		o.pass(ticks)
		*o = min(*o, ouster(m.ttl)+1) // it was seen while the leader did not know yet that it had stood still
	}
}

// apply is a leader that applies one change of a session.
func (h *host) apply(e *Entry, reading int64) {
	x := e.Session
	isOpen := x.as(h.applied).status[0] == open
	renews := isOpen && (e.Op == Opens || e.Op == Renews)
	if l := x.letters.at(e.Number); renews && l != nil && l.mail != noMail {
		l.reply(true, false)
	}
	switch {
	case x.over || !h.ready():
	case !isOpen && h.of(x) != nil:
		h.measured[x.number] = nil
	case renews:
		m := h.measure(x, reading)
		m.lease, m.late, m.decided, m.said = lease{left: int(x.ttl)}, 0, false, 0
	}
}

// judge is that of the model: the session of a client that believes is open.
func (x *Session) judge() error {
	x.pass()
	for len(x.heard) > 0 {
		x.take()
	}
	if x.client.left > 0 && x.client.status == open && x.states[len(x.states)-1].status[0] != open {
		return fmt.Errorf("%s, for %d ns more, and its session has ended", believes, x.client.left)
	}
	return nil
}
