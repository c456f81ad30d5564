package byconsensus

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	EntersWhenDecided bool // S4 enters as soon as its request is decided
	OwnSlots          bool // S2 counts only the slots of its own requests
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self, slot: c.Base.Fence, failed: process.NewSet(c.N)}
}
