package byconsensus

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the layer does otherwise. The zero Flaw is none.
type Flaw struct {
	EntersWhenDecided bool // S4: enters as soon as its request is decided
	OwnSlots          bool // S2: counts the slots of its own requests only
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self, slot: c.Base.Fence, failed: process.NewSet(c.N)}
}
