package tokenring

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	AcceptsCopies bool // R2b is missing: a duplicate of the token counts as the token
	MakesTokens   bool // R7 calls no election: a process that has waited very long makes a new token
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
