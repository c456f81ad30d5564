package tokenring

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	AcceptsCopies bool // R2b is missing: a copy of the token is one, too
	MakesTokens   bool // R7 calls no election: who has waited very long makes a new token
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
