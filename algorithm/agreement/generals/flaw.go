package generals

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // m rounds instead of m+1
	RepeatsIDs   bool // a path may contain a process twice
	Waits        bool // there is no default: a round ends only when every value has come

	all bool // not a flaw: every process is a commander
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

// levels is the number of times that a value is passed on.
func levels(m, n int) int { return max(0, min(m, n-2)) }
