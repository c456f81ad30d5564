package floodset

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OneRoundLess bool // f rounds instead of f+1
	OwnValueOnly bool // R3a is missing: no process passes on what it has learned
	DecidesFirst bool // R4a: decides before it sends LAST
}

// New makes a machine with the flaw.
func (flaw Flaw) New(_ process.ID, c *process.Config) process.Machine {
	rounds := min(c.IntOption("f", 1), c.N-1) + 1
	if flaw.OneRoundLess {
		rounds = max(1, rounds-1)
	}
	return &machine{
		c: c, flaw: flaw, rounds: uint64(rounds),
		early:  c.Option("mode", full) == early,
		length: process.Duration(c.IntOption("round", 2)) * c.D(),
	}
}
