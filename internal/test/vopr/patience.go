package vopr

import "github.com/conclave-io/conclave/internal/service/registry"

// patience is the judge's record of elections in which a candidate may replace the leader, by name.
type patience map[string]favourite

// favourite is a candidate that waits behind a leader of lower priority.
type favourite struct {
	candidate, leader claimID
	server            uint64 // the server that leads, and its term
	term              uint64
	since             int64 // when this was first observed without faults
}

const (
	// patienceSlack is the additional time that a candidate may wait while there are no faults. It
	// covers the interval of checks at heartbeats, one log entry, and the effects of earlier
	// faults.
	patienceSlack = 800 * ms
)

// watchPatience checks the elections repeatedly.
func (w *world) watchPatience() {
	if !w.calm() || w.asking != nil {
		w.uneasy = w.now
	}
	w.judge.favourites(w)
	w.after(tick, w.watchPatience)
}

// favourites checks that a candidate replaces a leader of lower priority when its patience is over.
// Wall clocks must not affect this. Only time without faults under the same leader of the servers
// counts, while a majority can commit: too many servers may still wait for snapshots.
func (j *judge) favourites(w *world) {
	leader := w.leader()
	if leader == nil || !w.calm() || w.majority() == 0 {
		clear(j.patience)
		return
	}
	for _, res := range j.resources {
		if res.class != registry.Election {
			continue
		}
		f, length, found := res.favourite(leader)
		if !found {
			delete(j.patience, res.name)
			continue
		}
		if known := j.patience[res.name]; known.candidate != f.candidate || known.leader != f.leader || known.server != f.server || known.term != f.term {
			f.since = w.now
			j.patience[res.name] = f
			continue
		}
		if waited := w.now - j.patience[res.name].since; waited > leader.clock.Real(length)+patienceSlack {
			w.violate("patience", "a candidate of %q waits for %d ms behind a leader of lower priority, and said %d", res.name, waited/ms, length/ms)
		}
		w.stats.Patient++
	}
}

// favourite returns the first waiting candidate and its patience. found is true if the candidate
// has a higher priority than the leader, and the leader was not asked to leave yet.
func (r *resource) favourite(leader *server) (f favourite, length int64, found bool) {
	view, held, _ := leader.replica.Registry().Explain(r.class, r.name, 1)
	if !held || len(view.Waiters) == 0 {
		return f, 0, false
	}
	leads, first := view.Holders[0], view.Waiters[0]
	candidate := claimOf(first.Session, first.Sequence)
	length = r.patient[candidate]
	f = favourite{candidate: candidate, leader: claimOf(leads.Session, leads.Sequence), server: leader.id, term: leader.replica.Term()}
	return f, length, length > 0 && !leads.Revoked && first.Priority > leads.Priority
}

// calm reports whether there are no faults at the servers or between them.
func (w *world) calm() bool {
	if len(w.cuts) > 0 || w.storm != nil {
		return false
	}
	for _, s := range w.servers {
		if !s.removed && (!s.up() || s.lost || s.paused || s.narrow > 0 || s.disk.slow > 0 || s.disk.hung > 0 || s.disk.full) {
			return false
		}
	}
	return true
}
