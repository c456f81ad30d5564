package byconsensus

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	LeadsAtOnce bool // L1: leads when it proposes itself
	LastWins    bool // L2a is missing: the last process decided for a round leads in it
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self}
}
