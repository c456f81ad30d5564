package leasemodel

// The rules that measure one session, without the world around it: the search and the
// one who follows a run (follow.go) go by the same.

// inherit is the lease with which a new leader starts a session: its full TTL, or what is
// on record of a silent one.
func inherit(ttl, remaining int, bound bool, f Flaw) lease {
	fresh := lease{left: ttl}
	if bound {
		fresh.state = inherited
	}
	if f == HalfTTL {
		fresh.left = ttl / 2
	}
	if remaining > 0 {
		fresh = lease{left: remaining, state: silent}
	}
	return fresh
}

// pass lets the clock of the leader advance.
func (s *lease) pass(ticks int) { s.left = max(0, s.left-ticks) }

// renew extends a lease on the word of a renewal.
func (s *lease) renew(ttl int) {
	s.left = max(s.left, ttl)
	if s.state == inherited {
		s.state = renewed
	}
}

// byRound reports whether a round suffices to acknowledge a renewal. A silent session is
// renewed through the log, and one that expires not at all.
func (s *lease) byRound(f Flaw) bool {
	switch s.state {
	case silent:
		return f == SilentByRound
	case expiring:
		return f.renewsExpiring()
	}
	return true
}

// mayExpire reports whether the session may be proposed to expire.
func (s *lease) mayExpire() bool { return s.left == 0 && s.state != expiring }

// maySilence reports whether the session may be put on record as silent: for the first
// time, or again with less than is on record.
func (s *lease) maySilence(ttl, recorded int) bool {
	return s.left > 0 && s.left != ttl && s.state != expiring && (s.state != silent || s.left < recorded)
}

// see notes when a leader has first seen that a hold is revoked.
func (o *ouster) see(revoked bool, ttl int, f Flaw) {
	switch {
	case !revoked:
		*o = 0
	case *o == 0 && f == RevokedAtOnce:
		*o = 1
	case *o == 0:
		*o = ouster(ttl) + 1
	}
}

// pass lets the clock of the leader advance.
func (o *ouster) pass(ticks int) {
	if *o > 1 {
		*o = max(1, *o-ouster(ticks))
	}
}

// due reports whether the hold may be dropped.
func (o ouster) due() bool { return o == 1 }

// reply sends the answer to a renewal.
func (r *renewal) reply(alive, tells bool) {
	r.at = 0
	switch {
	case !alive:
		r.mail = refused
	case tells:
		r.mail = ackRevoked
	default:
		r.mail = acked
	}
}
