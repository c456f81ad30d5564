package leasemodel

import (
	"fmt"
	"slices"
)

// The sessions of a run that is followed: clients, renewals and leases.

// Open is a client that is about to open a session. now reads its clock.
func (r *Run) Open(ttl, margin int64, now func() int64) *Session {
	x := &Session{run: r, number: len(r.sessions), ttl: ttl, usable: ttl - margin, now: now, reading: now(), states: []*state{{}}}
	r.sessions = append(r.sessions, x)
	return x
}

// pass lets the client's clock advance.
func (x *Session) pass() {
	reading := x.now()
	ticks := int(reading - x.reading)
	x.reading = reading
	for ticks > 0 && len(x.heard) > 0 {
		x.take()
	}
	for i := range x.letters {
		x.letters[i].value.pass(ticks, int(x.usable))
	}
	for len(x.letters) > 0 && x.letters[0].value.mail == noMail {
		x.letters = x.letters[1:]
	}
	if x.client.pass(ticks) {
		x.Lose()
	}
}

// Send is a client that sends a renewal, or a request to open the session.
func (x *Session) Send(number uint64) {
	if number <= x.newest {
		return // it is as old as before
	}
	x.pass()
	x.newest = number
	*x.letters.put(number) = renewal{mail: sent}
	x.run.count(ruleSend)
}

// Over reports whether the session is followed no further.
func (x *Session) Over() bool { return x.over }

// Lose is a client that knows that its session is lost, or that is dead.
func (x *Session) Lose() { x.client = client{status: gone} }

// Arrive is a renewal, or a request to open a session, that reaches a server that leads.
// extended says that it extended the lease of the session at once.
func (r *Run) Arrive(id uint64, x *Session, o Op, number uint64, reading int64, extended bool) error {
	h := r.host(id)
	if x.over || !h.leads() || number > x.newest {
		return nil
	}
	r.count(ruleArrive)
	if o == Opens || h.ready() && h.of(x) == nil {
		return nil // the log will say that there is no such session
	}
	m := h.measure(x, reading)
	if h.ready() && !extended {
		return m.refuses(x, id, number)
	}
	if h.ready() {
		if !m.byRound(None) {
			return forbidden(ruleArrive, "renewal %d extends the lease of a session at server %d, which is %s there", number, id, leaseNames[m.state])
		}
		m.renew(int(x.ttl))
		m.late = 0
	}
	m.asks = append(m.asks, ask{number: number})
	return nil
}

// refuses is a renewal that has to go through the log. If the state does not say why, a
// verdict was passed that is not in the log yet.
func (m *measure) refuses(x *Session, id, number uint64) error {
	switch {
	case !m.byRound(None):
	case m.mayExpire():
		m.state, m.decided = expiring, true
	case m.maySilence(int(x.ttl), int(m.said)):
		m.state, m.decided = silent, true
	default:
		return forbidden(ruleArrive, "renewal %d does not extend the lease of a session at server %d, which is %s there", number, id, leaseNames[m.state])
	}
	return nil
}

// Reply is a leader that acknowledges a renewal, and has told the client or not that a
// hold is revoked. asked says whether one is revoked by now.
func (r *Run) Reply(id uint64, x *Session, number uint64, reading int64, told, asked bool, configs ...[]uint64) error {
	h, l := r.host(id), x.letters.at(number)
	if x.over {
		return nil
	}
	m := h.of(x)
	if m != nil && told != asked && told != (len(m.ousters) > 0) {
		return forbidden(ruleConfirm, "server %d acknowledges renewal %d and says of a revoked hold: %t", id, number, told)
	}
	if l == nil || l.mail == noMail || l.answered() { // it is worth nothing, or was answered by the log, or before
		return nil
	}
	if !h.ready() || m == nil || x.as(h.applied).status[0] != open {
		return forbidden(ruleConfirm, "server %d, which is %s, acknowledges renewal %d of a session that is not open there", id, roleNames[h.role], number)
	}
	m.pass(reading)
	if !r.confirm(h, x, m, number, configs) {
		return forbidden(ruleConfirm, "server %d acknowledges renewal %d of a session, which is %s there, in no round that a majority of %v has answered", id, number, leaseNames[m.state], configs)
	}
	l.reply(true, told)
	return nil
}

// confirm extends a lease by a round that a majority has answered.
func (r *Run) confirm(h *host, x *Session, m *measure, number uint64, configs [][]uint64) bool {
	for i, a := range m.asks {
		if a.number != number && number != 0 || !r.confirmed(h, a.round, configs) || !m.byRound(None) {
			continue
		}
		m.renew(int(x.ttl))
		m.late = 0
		m.asks = append(m.asks[:i], m.asks[i+1:]...)
		r.count(ruleConfirm)
		return true
	}
	return false
}

func (r *Run) confirmed(h *host, round uint64, configs [][]uint64) bool {
	alone := func(v uint64) bool { return v == h.id }
	answered := func(v uint64) bool { return v == h.id || round != 0 && h.answered.get(v) >= round }
	return majority(configs, alone) || majority(configs, answered)
}

// Gone is a server that tells a client that its session is not open.
func (r *Run) Gone(id uint64, x *Session) error {
	if !x.over && x.as(r.host(id).applied).status[0] == open {
		return forbidden(ruleConfirm, "server %d says of a session that it has ended, and it is open", id)
	}
	return nil
}

// Receive is a client that takes the answer to a renewal.
func (x *Session) Receive(number uint64) error {
	x.pass()
	l := x.letters.at(number)
	if l == nil || l.mail == noMail || x.over || x.client.status == gone {
		return nil
	}
	if !l.answered() {
		return forbidden(ruleReceive, "a client takes an answer to renewal %d, which nobody has given", number)
	}
	x.heard = append(x.heard, number)
	x.run.count(ruleReceive)
	return nil
}

// take has the client take the next answer that it received in this frame.
func (x *Session) take() {
	if l := x.letters.at(x.heard[0]); l != nil && l.mail != noMail && x.client.status != gone {
		x.client.extend(l.age, int(x.usable))
	}
	x.heard = x.heard[1:]
}

// Believes is a client that moves its deadline.
func (x *Session) Believes(until int64) error {
	x.pass()
	for len(x.heard) > 0 && until-x.reading != int64(x.client.left) {
		x.take()
	}
	if !x.over && (x.client.status != open || until-x.reading != int64(x.client.left)) {
		return forbidden(ruleReceive, "a client believes for %d ns; in the model it is %s, for %d", until-x.reading, statusNames[x.client.status], x.client.left)
	}
	return nil
}

// View is what a server that leads shows of a session.
type View struct {
	Open, Silent   bool
	Renewals       uint64
	Recorded, Left int64
	Asked          []uint64 // the claims that are revoked
}

// Compare requires of a server that has applied all that is committed, and leads, that it
// shows what the model has.
func (r *Run) Compare(id uint64, x *Session, reading int64, v *View, configs ...[]uint64) error {
	h := r.host(id)
	if x.over || !h.ready() {
		return nil
	}
	seen := x.as(h.applied)
	isOpen := seen.status[0] == open
	if isOpen != v.Open || v.Silent != (seen.remaining[0] > 0) || v.Recorded != int64(seen.remaining[0]) {
		return fmt.Errorf("server %d shows a session as open %t, silent %t with %d ns; in the model it is %s, with %d", id, v.Open, v.Silent, v.Recorded, statusNames[seen.status[0]], seen.remaining[0])
	}
	seen.count = v.Renewals
	if !isOpen {
		return nil
	}
	m := h.measure(x, reading)
	m.renewed = v.Renewals
	r.oust(x, m, v.Asked)
	if v.Left == x.ttl && int64(m.left) < x.ttl {
		r.confirm(h, x, m, 0, configs)
	}
	if v.Left != int64(m.left) {
		return fmt.Errorf("server %d measures %d ns for a session; the model has %d, and it is %s", id, v.Left, m.left, leaseNames[m.state])
	}
	r.count(ruleTick)
	return nil
}

// oust notes which holds are revoked.
func (r *Run) oust(x *Session, m *measure, asked []uint64) {
	m.ousters.drop(func(claim uint64) bool { return !slices.Contains(asked, claim) })
	for _, claim := range asked {
		if m.ousters.at(claim) == nil {
			m.ousters.put(claim).see(true, int(x.ttl), None)
			r.count(ruleRevoke)
		}
	}
}
