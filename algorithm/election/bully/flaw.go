package bully

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	WaitsForEver bool // B4a is missing: a process that got OK waits for the winner without a timer
}

// New makes a machine with the flaw that elects by label.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := New(self, c, false).(*machine)
	m.flaw = flaw
	return m
}
