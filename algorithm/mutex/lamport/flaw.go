package lamport

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoTieBreak bool // of two requests of the same time each process treats its own as the older one
	HeadOnly   bool // R5 does not wait for a younger message from every other process
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
