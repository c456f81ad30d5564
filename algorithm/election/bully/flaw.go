package bully

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	WaitsForEver bool // B4a is missing: who has its OK waits for the winner without a timer
}

// New makes a machine with the flaw that elects by label.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := New(self, c, false).(*machine)
	m.flaw = flaw
	return m
}
