package maekawa

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	KeepsVotes  bool // R8b is missing: a process that withdraws tells no voter
	NoDisplaced bool // R2d is missing: the request that was the oldest before is not told FAILED
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
