package leasemodel

// The rules of internal/service/replica by which a leader measures the time of sessions.

// commit applies what a leader has in its log, as internal/service/replica/apply.go does.
func (w *world) commit(l int) {
	s, r := &w.servers[l], &w.registry
	var renewed [maxClients]bool
	for i := range s.suffix {
		e := &s.suffix[i]
		c := int(e.client)
		if r.apply(e, w.flaw) {
			renewed[c] = true
			w.forgetKept(c)
		}
		if e.op == opOpen || e.op == opRenew {
			w.reply(c, l, r.status[c] == open, r.tells(c), logged)
		}
	}
	s.suffix = s.suffix[:0]
	if !s.ready() {
		w.lead(l)
	}
	for c := range w.clientCount {
		switch {
		case r.status[c] != open:
			s.leases[c] = lease{}
		case renewed[c]:
			s.leases[c] = lease{left: w.ttl}
		}
	}
	w.oust(l)
	if w.coarse {
		w.begin(l)
	}
}

// forgetKept voids the verdicts on a session that was renewed through the log: they
// name another count of renewals.
func (w *world) forgetKept(c int) {
	for i := range w.servers {
		w.servers[i].kept &^= 1 << c
	}
}

// lead starts the leases once a leader has applied the first entry of its own term: each
// session at its full TTL, and a silent one with what is on record.
func (w *world) lead(l int) {
	s, r := &w.servers[l], &w.registry
	s.role = leader
	for c := range w.clientCount {
		fresh := inherit(w.ttl, r.remaining[c], w.bound, w.flaw)
		if w.flaw != OldLeases || s.leases[c] == (lease{}) {
			s.leases[c] = fresh
		}
	}
}

// oust notes when a leader has first seen that a hold is revoked: it is dropped a full
// TTL later, as in internal/service/lease/revoked.go.
func (w *world) oust(l int) { w.servers[l].ouster.see(w.registry.revoked, w.ttl, w.flaw) }

// reply sends the answer to a renewal that waits at a leader at the given stage.
func (w *world) reply(c, l int, alive, tells bool, stage mail) {
	m := &w.clients[c].renewal
	if m.mail != stage || m.at != l+1 {
		return
	}
	m.reply(alive, tells && w.flaw != RevokedUntold)
	if w.coarse {
		w.receive(c)
	}
}

// sees returns what the registry of a leader says of a session: whether it is open, and
// whether its client is asked to leave. A leader that others have left behind has an
// old registry.
func (w *world) sees(l, c int) (alive, tells bool) {
	bits := w.registry.seen()
	if w.servers[l].behind {
		bits = w.servers[l].seen
	}
	return bits>>c&1 != 0, bits>>(maxClients+c)&1 != 0
}

// renews extends a lease on the word of a renewal. It reports whether a round suffices
// to acknowledge it: a silent session is renewed through the log, and one that expires
// not at all.
func (w *world) renews(l, c int) bool {
	s := &w.servers[l].leases[c]
	if !s.byRound(w.flaw) {
		return false
	}
	s.renew(w.ttl)
	return true
}

// findLeases lists what a leader may do with sessions.
func (w *world) findLeases(l int) {
	s := &w.servers[l]
	if !s.leads() {
		return
	}
	for c := range w.clientCount {
		if w.sends(l, c) && w.takesRenewal(l, c) {
			w.may(ruleArrive, l, c, 0)
		}
	}
	switch {
	case w.coarse:
	case s.round == noRound && s.ready() && w.waiting(l):
		w.may(ruleBegin, l, 0, 0)
	case s.round == answered:
		if w.canConfirm(l) {
			w.may(ruleConfirm, l, 0, 0)
		}
	}
	if !w.room(l) {
		return
	}
	for c := range w.clientCount {
		if w.registry.status[c] != open || s.inFlight(opRenew, c) || s.inFlight(opOpen, c) {
			continue // a verdict would be void, for it names the count of renewals
		}
		if s.leases[c].mayExpire() {
			w.may(ruleExpire, l, c, 0)
		}
		if w.maySilence(l, c) {
			w.may(ruleSilence, l, c, 0)
		}
		if s.kept>>c&1 != 0 {
			w.may(ruleKept, l, c, 0)
		}
	}
	w.findRevocations(l)
}

func (w *world) findRevocations(l int) {
	s, r := &w.servers[l], &w.registry
	switch c := r.holder - 1; {
	case c < 0:
	case s.ouster.due() && !s.inFlight(opDrop, c):
		w.may(ruleDrop, l, c, 0)
	case !r.revoked && w.revoked < w.revocations && !s.inFlight(opRevoke, c):
		w.may(ruleRevoke, l, c, 0)
	}
}

// maySilence reports whether a leader may put it on record that a session is silent. It
// does so at any time after a tick without a renewal; see mustSilence. It does so again
// only in a search of the bound.
func (w *world) maySilence(l, c int) bool {
	s := &w.servers[l].leases[c]
	if w.flaw == NoSilence || w.servers[l].inFlight(opSilence, c) {
		return false
	}
	return s.maySilence(w.ttl, w.registry.remaining[c]) && (s.state != silent || w.bound)
}

// mustSilence reports whether it must do so before time goes on: after half of a TTL, a
// quarter of the TTL if the session is inherited, and from then on once a tick, which
// stands for again in internal/service/lease/lease.go.
func (w *world) mustSilence(l, c int) bool {
	s := &w.servers[l].leases[c]
	limit := w.ttl - max(1, w.ttl/2)
	if s.state == inherited {
		limit = w.ttl - max(1, w.ttl/4)
	}
	return w.maySilence(l, c) && (s.state == silent || s.left <= limit)
}

// waiting reports whether a renewal waits for a round of the leader.
func (w *world) waiting(l int) bool {
	for c := range w.clients {
		if w.clients[c].renewal.at == l+1 && w.clients[c].renewal.mail == waits {
			return true
		}
	}
	return false
}

// takesRenewal reports whether a leader takes a renewal now. One through the log needs
// room there.
func (w *world) takesRenewal(l, c int) bool {
	s := &w.servers[l]
	alive, _ := w.sees(l, c)
	switch {
	case w.clients[c].status == unopened:
		return w.room(l)
	case !s.ready() || !alive:
		return true
	case w.flaw == NoRound:
		return true
	}
	return s.leases[c].byRound(w.flaw) || w.room(l)
}

// arrive is a renewal that reaches a leader: internal/service/replica/submit.go.
func (w *world) arrive(l, c int) {
	s, m := &w.servers[l], &w.clients[c]
	m.renewal.mail, m.renewal.at = waits, l+1
	if w.coarse {
		m.renewal.age = 0
	}
	alive, tells := w.sees(l, c)
	switch {
	case m.status == unopened:
		m.renewal.mail = logged
		s.propose(opOpen, c, 0)
	case !s.ready():
	case !alive:
		w.reply(c, l, false, false, waits)
	case !w.renews(l, c):
		m.renewal.mail = logged
		s.propose(opRenew, c, 0)
	case w.flaw == NoRound:
		w.reply(c, l, true, tells, waits)
	case w.flaw == OldRound && s.round != noRound:
		m.renewal.mail = inRound
	case w.coarse:
		w.begin(l)
	}
}

// begin starts a round with all renewals that wait, unless one is under way.
func (w *world) begin(l int) {
	if w.servers[l].round != noRound || !w.waiting(l) {
		return
	}
	w.servers[l].round = begun
	for c := range w.clients {
		if m := &w.clients[c].renewal; m.at == l+1 && m.mail == waits {
			m.mail = inRound
		}
	}
}

// canConfirm reports whether there is room for the renewals that a round does not
// suffice for.
func (w *world) canConfirm(l int) bool {
	need := 0
	for c := range w.clientCount {
		alive, _ := w.sees(l, c)
		if m := &w.clients[c].renewal; m.at == l+1 && m.mail == inRound && alive && !w.servers[l].leases[c].byRound(w.flaw) {
			need++
		}
	}
	return need == 0 || w.room(l) && len(w.servers[l].suffix)+need <= w.inflight
}

// confirm answers the renewals of a round that a majority has answered.
func (w *world) confirm(l int) {
	w.servers[l].round = noRound
	for c := range w.clientCount {
		m := &w.clients[c].renewal
		if m.at != l+1 || m.mail != inRound {
			continue
		}
		alive, tells := w.sees(l, c)
		if alive && !w.renews(l, c) {
			m.mail = logged
			w.servers[l].propose(opRenew, c, 0)
			continue
		}
		w.reply(c, l, alive, tells, inRound)
	}
	if w.coarse {
		w.begin(l)
	}
}
