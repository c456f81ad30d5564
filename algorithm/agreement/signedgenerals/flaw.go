package signedgenerals

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // m rounds instead of m+1
	FirstOrder   bool // R5: decides the first of two orders
	OneOrder     bool // R4a: passes on the first order only
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	rounds := levels(c.IntOption("m", 1), c.N) + 1
	if flaw.OneRoundLess {
		rounds = max(1, rounds-1)
	}
	return &machine{
		self: self, c: c, flaw: flaw, rounds: rounds,
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}

// levels is the number of times that an order is passed on: when all but one process
// have signed it, none is left to receive it.
func levels(m, n int) int { return max(0, min(m, n-2)) }
