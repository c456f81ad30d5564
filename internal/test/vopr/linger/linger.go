// Package linger judges that a name stays closed after a hold, for as long as its request asked:
// nobody is granted it earlier. The judge knows of a hold only what clients and readers can know.
// So it computes the earliest time at which each hold can have begun, and from that the earliest
// time at which the next one may begin.
package linger

import (
	"github.com/conclave-io/conclave/internal/test/vopr/clock"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/faults"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

const ms = events.Millisecond

// Terms are what a request asks, in ns: to keep the name closed for so long after the grant, and
// after the loss of the hold.
type Terms struct{ AtLeast, Delay int64 }

// Judge is the record of the names that stay closed.
type Judge struct {
	run   *events.Run
	asked map[history.ClaimID]*asked
	names map[string]*name
}

// asked is a request that was transmitted.
type asked struct {
	Terms
	called int64 // when it was transmitted
	name   string
	unused bool // its client gives the hold back unused
}

// name is what is known of a name. last was the last to hold it, and opens the earliest time at which
// the next one may.
type name struct {
	last  *asked
	begun int64 // the earliest time at which last can have been granted
	opens int64
}

// New returns the judge of a run.
func New(run *events.Run) *Judge {
	return &Judge{run: run, asked: make(map[history.ClaimID]*asked), names: make(map[string]*name)}
}

// Enters records a request for a name that is transmitted.
func (j *Judge) Enters(claim history.ClaimID, of string, terms Terms) {
	j.asked[claim] = &asked{Terms: terms, called: j.run.Now, name: of}
}

// Unused records that the client of a claim gives it back without having used it, so that the name
// need not stay closed.
func (j *Judge) Unused(claim history.ClaimID) {
	a := j.asked[claim]
	if a == nil {
		return
	}
	a.unused = true
	if n := j.names[a.name]; n != nil && n.last == a {
		n.opens = n.begun
	}
}

// Holds checks a claim that a server shows for the first time to hold its name.
func (j *Judge) Holds(claim history.ClaimID) {
	a := j.asked[claim]
	if a == nil {
		return
	}
	n := j.names[a.name]
	if n == nil {
		n = new(name)
		j.names[a.name] = n
	}
	if j.run.Now < n.opens {
		j.run.Violate("linger", "%q is granted %d ms before the time until which its last holder keeps it closed", a.name, (n.opens-j.run.Now)/ms)
	}
	if n.opens > a.called {
		j.run.Stats.Lingered++
	}
	n.last, n.begun = a, max(a.called, n.opens)
	if n.opens = n.begun; !a.unused {
		n.opens += least(a.AtLeast)
	}
}

// Lost records that the servers let the hold of a claim expire, which cannot have been before the
// deadline that its client knew.
func (j *Judge) Lost(claim history.ClaimID, deadline int64) {
	a := j.asked[claim]
	if a == nil {
		return
	}
	if n := j.names[a.name]; n != nil && n.last == a && !a.unused {
		n.opens = max(n.opens, deadline+least(a.Delay))
	}
}

// least returns how long a duration on the clock of a leader takes at least.
func least(d int64) int64 { return d - d*faults.MaxDrift/clock.Million }
