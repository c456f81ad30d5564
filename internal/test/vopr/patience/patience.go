// Package patience judges that a candidate of an election replaces a leader of lower priority when
// its patience is over. Wall clocks must not affect this.
package patience

import (
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/test/vopr/clock"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

const (
	ms = events.Millisecond
	// slack is the additional time that a candidate may wait while there are no faults. It covers the
	// interval of checks at heartbeats, one log entry, and the effects of earlier faults.
	slack = 800 * ms
)

// Judge is the record of the elections in which a candidate may replace the leader.
type Judge struct {
	run        *events.Run
	elections  []string
	lengths    map[history.ClaimID]int64 // the patience of candidates, in ns
	favourites map[string]favourite      // by the name of the election
}

// favourite is a candidate that waits behind a leader of lower priority.
type favourite struct {
	candidate, leader history.ClaimID
	server            uint64 // the server that leads, and its term
	term              uint64
	since             int64 // when this was first observed without faults
}

// Server is a server that leads, in a term.
type Server struct {
	ID, Term uint64
	Clock    *clock.Clock
	Registry *registry.Registry
}

// New returns the judge of a run with these elections.
func New(run *events.Run, elections []string) *Judge {
	return &Judge{run: run, elections: elections, lengths: make(map[history.ClaimID]int64), favourites: make(map[string]favourite)}
}

// Enters records a candidate that has patience, in ns.
func (j *Judge) Enters(candidate history.ClaimID, patience int64) { j.lengths[candidate] = patience }

// Forget starts to measure again, because of a fault.
func (j *Judge) Forget() { clear(j.favourites) }

// Watch checks the elections. Only time without faults under the same leader of the servers counts.
func (j *Judge) Watch(leader *Server) {
	for _, name := range j.elections {
		f, length, found := j.favourite(name, leader)
		if !found {
			delete(j.favourites, name)
			continue
		}
		if known := j.favourites[name]; known.candidate != f.candidate || known.leader != f.leader || known.server != f.server || known.term != f.term {
			f.since = j.run.Now
			j.favourites[name] = f
			continue
		}
		if waited := j.run.Now - j.favourites[name].since; waited > leader.Clock.Real(length)+slack {
			j.run.Violate("patience", "a candidate of %q waits for %d ms behind a leader of lower priority, and said %d", name, waited/ms, length/ms)
		}
		j.run.Stats.Patient++
	}
}

// favourite returns the first waiting candidate of an election and its patience. found is true if the
// candidate has a higher priority than the leader, and the leader was not asked to leave yet.
func (j *Judge) favourite(name string, leader *Server) (f favourite, length int64, found bool) {
	view, held, _ := leader.Registry.Freeze().Explain(registry.Election, name, 1)
	if !held || len(view.Holders) == 0 || len(view.Waiters) == 0 {
		return f, 0, false
	}
	leads, first := view.Holders[0], view.Waiters[0]
	candidate := history.ClaimOf(first.Session, first.Sequence)
	length = j.lengths[candidate]
	f = favourite{candidate: candidate, leader: history.ClaimOf(leads.Session, leads.Sequence), server: leader.ID, term: leader.Term}
	return f, length, length > 0 && !leads.Revoked && first.Priority > leads.Priority
}
