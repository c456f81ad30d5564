package leasemodel

import "github.com/conclave-io/conclave/process"

// The rules of the client: package internal/client/line, watch.go, session.go and reply.go.

// believes reports whether a client believes, by its own clock, that it holds the lock.
func (m *client) believes() bool { return m.status == open && m.claim == held && m.left > 0 }

// usable is how many ticks a client believes at most after it sent a renewal.
func (s *settings) usable() int { return s.ttl - s.margin }

// findClients lists what clients may do, and what of theirs leaders may.
func (w *world) findClients() {
	for c := range w.clientCount {
		m := &w.clients[c]
		if m.status == gone {
			continue
		}
		if !w.coarse && (m.renewal.mail == noMail || m.renewal.age > 0) {
			w.may(ruleSend, 0, c, 0)
		}
		if m.renewal.answered() {
			w.may(ruleReceive, 0, c, 0)
		}
		if m.claim == granted {
			w.may(ruleEnter, 0, c, 0)
		}
		if w.bound && c == 0 && m.status == open && !w.dead {
			w.may(ruleDie, 0, c, 0)
		}
		for l := range w.servers {
			w.findClaims(l, c)
		}
	}
}

// findClaims lists what a leader may do with the lock for a client. In a search of the
// bound nobody needs one.
func (w *world) findClaims(l, c int) {
	m, r := &w.clients[c], &w.registry
	switch {
	case m.status != open || w.bound:
	case (m.claim == noClaim || m.claim == asking) && !r.asked[c] && w.room(l) && !w.servers[l].inFlight(opAcquire, c):
		w.may(ruleAcquire, l, c, 0)
	case m.claim == asking && r.holder == c+1 && w.servers[l].ready() && !w.servers[l].behind:
		w.may(ruleGrant, l, c, 0)
	}
}

// send sends a renewal, or a request to open the session. One that was sent before is
// given up, since its answer is worth less.
func (m *client) send() { m.renewal = renewal{mail: sent} }

// resend sends a renewal again that a leader had. It is as old as before. If messages
// take no time the client makes a new one, which is worth more.
func (m *client) resend(coarse bool) {
	m.renewal.mail, m.renewal.at = sent, 0
	if coarse {
		m.renewal = renewal{}
	}
}

// sends reports whether a renewal of a client may reach a leader now.
func (w *world) sends(l, c int) bool {
	m := &w.clients[c]
	if !w.coarse {
		return m.renewal.mail == sent
	}
	return m.status != gone && (m.renewal.mail == noMail || m.renewal.age > 0 || m.renewal.at != l+1)
}

// answered reports whether the answer is on its way to the client.
func (r *renewal) answered() bool { return r.mail >= acked }

// pass lets a renewal age by the client's clock. One whose answer would be worth nothing
// is given up.
func (r *renewal) pass(ticks, usable int) {
	if r.mail == noMail {
		return
	}
	if r.age += ticks; r.age >= usable {
		*r = renewal{}
	}
}

// extend takes an answer that says the session is renewed: the deadline counts from when
// the renewal was sent.
func (m *client) extend(age, usable int) { m.status, m.left = open, max(m.left, usable-age) }

// receive takes the answer to a renewal.
func (w *world) receive(c int) {
	m := &w.clients[c]
	answer, age := m.renewal.mail, m.renewal.age
	if w.flaw == FromAnswer {
		age = 0
	}
	m.renewal.mail, m.renewal.age = noMail, 0
	if answer == refused {
		w.lose(c)
		return
	}
	if answer == ackRevoked {
		m.claim, m.fence = noClaim, 0 // before the deadline moves
	}
	m.extend(age, w.usable())
	w.settle(c)
}

// enter takes a grant. It extends nothing.
func (w *world) enter(c int) {
	m := &w.clients[c]
	m.claim = held
	if w.flaw == GrantRenews {
		m.left = w.usable()
	}
	process.Assert(m.fence > w.entered, "a fence is not larger than that of an earlier grant")
	w.entered = m.fence
}

// lose is a client that knows that its session is lost. It never believes again.
func (w *world) lose(c int) { w.clients[c] = client{status: gone} }

// settle sets a clock right by which nothing is measured: whatever it showed, nothing
// depends on it.
func (w *world) settle(c int) {
	if m := &w.clients[c]; m.left == 0 && m.renewal.mail == noMail {
		m.late = false
	}
}

// pass lets a client's clock advance. It reports whether the deadline has passed.
func (m *client) pass(ticks int) (over bool) {
	before := m.left
	m.left = max(0, m.left-ticks)
	return m.status == open && before > 0 && m.left == 0
}

// pass lets a client's clock advance.
func (w *world) pass(c, ticks int) {
	m := &w.clients[c]
	m.renewal.pass(ticks, w.usable())
	if m.pass(ticks) && !w.flaw.revives() {
		w.lose(c)
	}
	w.settle(c)
}
