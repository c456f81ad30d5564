package world

import (
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// patience is the judge's record of elections in which a candidate may replace the leader, by name.
type patience map[string]favourite

// favourite is a candidate that waits behind a leader of lower priority.
type favourite struct {
	candidate, leader history.ClaimID
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
func (w *World) watchPatience() {
	if !w.Calm() || w.asking != nil {
		w.uneasy = w.Now
	}
	w.Judge.favourites(w)
	w.After(tick, w.watchPatience)
}

// favourites checks that a candidate replaces a leader of lower priority when its patience is over.
// Wall clocks must not affect this. Only time without faults under the same leader of the servers
// counts, while a majority can commit: too many servers may still wait for snapshots.
func (j *judge) favourites(w *World) {
	leader := w.Leader()
	if leader == nil || !w.Calm() || w.majority() == 0 {
		clear(j.patience)
		return
	}
	for _, res := range j.resources {
		if res.Class != registry.Election {
			continue
		}
		f, length, found := res.favourite(leader)
		if !found {
			delete(j.patience, res.Name)
			continue
		}
		if known := j.patience[res.Name]; known.candidate != f.candidate || known.leader != f.leader || known.server != f.server || known.term != f.term {
			f.since = w.Now
			j.patience[res.Name] = f
			continue
		}
		if waited := w.Now - j.patience[res.Name].since; waited > leader.Clock.Real(length)+patienceSlack {
			w.Violate("patience", "a candidate of %q waits for %d ms behind a leader of lower priority, and said %d", res.Name, waited/ms, length/ms)
		}
		w.Stats.Patient++
	}
}

// favourite returns the first waiting candidate and its patience. found is true if the candidate
// has a higher priority than the leader, and the leader was not asked to leave yet.
func (r *Resource) favourite(leader *Server) (f favourite, length int64, found bool) {
	view, held, _ := leader.Replica.Registry().Freeze().Explain(r.Class, r.Name, 1)
	if !held || len(view.Waiters) == 0 {
		return f, 0, false
	}
	leads, first := view.Holders[0], view.Waiters[0]
	candidate := history.ClaimOf(first.Session, first.Sequence)
	length = r.patient[candidate]
	f = favourite{candidate: candidate, leader: history.ClaimOf(leads.Session, leads.Sequence), server: leader.ID, term: leader.Replica.Term()}
	return f, length, length > 0 && !leads.Revoked && first.Priority > leads.Priority
}

// Calm reports whether there are no faults at the servers or between them.
func (w *World) Calm() bool {
	if len(w.Net.Cuts) > 0 || w.Net.Storm {
		return false
	}
	for _, s := range w.Servers {
		if !s.removed && (!s.Up() || s.lost || s.Paused || s.Narrow > 0 || s.disk.slow > 0 || s.disk.hung > 0 || s.disk.full) {
			return false
		}
	}
	return true
}
