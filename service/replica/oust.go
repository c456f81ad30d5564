package replica

import "github.com/conclave-io/conclave/service/registry"

// oust looks after those who are asked to leave, and those whose turn it is.
//
// A revoked hold is dropped one TTL after this leader has seen the revocation.
// A renewal that is acknowledged after that moment tells the client; one that
// was acknowledged before was sent before, and carries its session no further
// than one TTL from then. So the client has stopped by itself or was told.
func (r *Replica) oust() {
	claims, ttls := r.reg.Revoked()
	now := r.leaseClock()
	var overdue []registry.ClaimID
	for i, id := range claims {
		switch until, known := r.ousted[id]; {
		case !known:
			r.ousted[id] = now + ttls[i]
		case until <= now:
			overdue = append(overdue, id)
			r.ousted[id] = now + ttls[i] // when to try again, if this entry is lost
		}
	}
	if len(r.ousted) > len(claims) {
		r.forgetGone()
	}
	if len(overdue) > 0 {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpDrop, Term: r.term, Claims: overdue})
	}
}

// forgetGone drops the deadlines of holds that have ended.
func (r *Replica) forgetGone() {
	claims, _ := r.reg.Revoked()
	present := make(map[registry.ClaimID]bool, len(claims))
	for _, id := range claims {
		present[id] = true
	}
	for id := range r.ousted {
		if !present[id] {
			delete(r.ousted, id)
		}
	}
}

// promote puts it into the log, once a heartbeat, that candidates may take their
// leaders' place. The replicated time says how long they have waited. Said twice, it
// is done once.
func (r *Replica) promote() {
	if !r.ready || r.looked < r.cfg.HeartbeatTicks {
		return
	}
	r.looked = 0
	for _, name := range r.reg.Overtaken(r.time()) {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpOvertake, Class: registry.Election, Name: name})
	}
}
