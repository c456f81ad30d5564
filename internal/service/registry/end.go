package registry

import "slices"

func (r *Registry) expire(verdicts []Verdict, fx *Effects) {
	over := make([]*session, 0, len(verdicts))
	for _, verdict := range verdicts {
		if s := r.judged(verdict); s != nil {
			over = append(over, s)
		}
	}
	r.end(over, Expired, fx)
}

// end removes the sessions with all their claims, and only then grants what became free, so
// that nothing is granted to another session that is ending.
func (r *Registry) end(sessions []*session, how Ending, fx *Effects) {
	var freed []*resource
	var claims []*claim
	fx.Ended = slices.Grow(fx.Ended, len(sessions))
	r.changed.ended = slices.Grow(r.changed.ended, len(sessions))
	for _, s := range sessions {
		if s.ended {
			continue // named twice
		}
		r.tally.removeSession(s)
		r.countSessions(s, -1)
		s.ended = true
		r.deeds.over(s, how)
		if s.server != 0 {
			r.thawGuarded().End(SeatOf(s.server, s.id))
			fx.View = true
		}
		r.changed.ended = append(r.changed.ended, s.sessionState)
		delete(r.sessions, s.id)
		fx.Ended = append(fx.Ended, s.id)
		if how != Expired {
			fx.Closed = append(fx.Closed, s.id)
		}
		claims = s.sortedClaims(claims[:0])
		for _, c := range claims {
			res := r.thaw(c.resource)
			r.abandon(c, how, fx)
			if !res.has(swept) {
				res.set(swept, true)
				freed = append(freed, res)
			}
		}
	}
	for _, res := range freed {
		res.sweep()
		r.settle(res, fx)
	}
}

// abandon records how a hold of an ended session ended, and reports the end of a
// wait.
func (r *Registry) abandon(c *claim, how Ending, fx *Effects) {
	r.unlist(c)
	r.tally.bytes -= c.bytes()
	r.countClaims(c, -1, -len(c.value))
	if c.held() {
		r.remember(c, how)
		return
	}
	r.waiters--
	r.unlink(c)
	result := fx.outcome(c)
	result.Code, result.Message = SessionGone, "the session ended while it waited"
}

func (r *Registry) silence(verdicts []Verdict) {
	for _, verdict := range verdicts {
		if s := r.judged(verdict); s != nil {
			r.thawSession(s)
			s.silent, s.remaining = true, verdict.Remaining
		}
	}
}

// judged returns the session of a verdict that is still valid, or nil.
func (r *Registry) judged(verdict Verdict) *session {
	s := r.sessions[verdict.Session]
	if s == nil || s.renewals != verdict.Renewals {
		return nil
	}
	return s
}
