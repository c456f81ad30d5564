package naimitrehel

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	RootGives bool // R2a is for a root that is inside only: one that waits acts as if it had the token
	StaysRoot bool // R2a does not set last: a root that waits or is inside stays the root
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
