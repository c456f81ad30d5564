package vopr

import "github.com/conclave-io/conclave/service/registry"

// patience is what the judge knows of elections in which a candidate may come to
// take the place of the leader, by name.
type patience map[string]favourite

// favourite is a candidate of higher priority than the leader that it waits behind.
type favourite struct {
	candidate, leader claimID
	server            uint64 // which leads the servers, and in which term
	term              uint64
	since             int64 // when all this was first seen and nothing was wrong
}

const (
	// patienceSlack is how much longer than it said a candidate may wait while
	// nothing is wrong: for a heartbeat's time to look, one entry of the log, and
	// what of earlier faults still has to settle.
	patienceSlack = 800 * ms
)

// watchPatience looks at the elections again and again.
func (w *world) watchPatience() {
	if !w.calm() || w.asking != nil {
		w.uneasy = w.now
	}
	w.judge.favourites(w)
	w.after(tick, w.watchPatience)
}

// favourites requires that a candidate takes the place of a leader of lower priority
// once it has waited as long as it said, whatever wall clocks show. Time in which
// something is wrong does not count, nor what was waited under another leader of the
// servers.
func (j *judge) favourites(w *world) {
	leader := w.leader()
	if leader == nil || !w.calm() {
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
		if waited := w.now - j.patience[res.name].since; waited > leader.clock.real(length)+patienceSlack {
			w.violate("patience", "a candidate of %q waits for %d ms behind a leader of lower priority, and said %d", res.name, waited/ms, length/ms)
		}
		w.stats.Patient++
	}
}

// favourite returns the candidate that waits first, and how long it said that it
// waits behind a leader of lower priority, if that is so and the leader is not asked
// to leave.
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

// calm reports whether nothing is wrong with the servers or between them.
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
