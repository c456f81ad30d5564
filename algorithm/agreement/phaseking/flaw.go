package phaseking

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OnePhaseLess bool // m phases instead of m+1
	ObeysKing    bool // R5: always takes the value of the king
	HalfIsEnough bool // R5: keeps every majority
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	faulty := c.IntOption("m", 1)
	phases := faulty + 1
	if flaw.OnePhaseLess {
		phases = max(1, phases-1)
	}
	return &machine{
		self: self, c: c, flaw: flaw, m: faulty, rounds: 2 * uint64(phases),
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}
