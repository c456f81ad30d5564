package replica

import "github.com/conclave-io/conclave/internal/service/registry"

// oust drops revoked holds whose time is over.
func (r *Replica) oust() {
	claims, ttls := r.reg.Revoked()
	if overdue := r.ousted.Overdue(claims, ttls, r.leaseClock()); len(overdue) > 0 {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpDrop, Term: r.term, Claims: overdue})
	}
}

// promote writes into the log, at most once per heartbeat, that candidates may replace their
// leaders. The replicated time says how long they have waited. Doing it twice has no further
// effect.
func (r *Replica) promote() {
	if !r.ready || r.looked < r.cfg.HeartbeatTicks {
		return
	}
	r.looked = 0
	for _, name := range r.reg.Overtaken(r.time()) {
		r.verdicts = append(r.verdicts, registry.Command{Op: registry.OpOvertake, Class: registry.Election, Name: name})
	}
}
