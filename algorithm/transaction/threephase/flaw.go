package threephase

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	DecidesAlone  bool // Q7: a participant that loses its coordinator decides by its own state
	CommitsAtOnce bool // Q5: the coordinator commits when it sends PRECOMMIT
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, leader: c.Topology.Coordinator, flaw: flaw,
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		failed:    process.NewSet(c.N), answered: process.NewSet(c.N),
	}
}
