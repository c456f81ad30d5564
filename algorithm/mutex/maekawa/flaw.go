package maekawa

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	KeepsVotes  bool // R8b is missing: who withdraws tells nobody
	NoDisplaced bool // R2d is missing: who was the best before is not told FAILED
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
