package signedgenerals

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
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

// levels is how often an order is passed on: with all but one process in it, nobody is
// left to hear of it.
func levels(m, n int) int { return max(0, min(m, n-2)) }
