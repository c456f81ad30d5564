package byconsensus

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the layer does otherwise. The zero Flaw is none.
type Flaw struct {
	LeadsAtOnce bool // L1: leads when it proposes itself
	LastWins    bool // L2a is missing: whoever is decided last for a round leads in it
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self}
}
