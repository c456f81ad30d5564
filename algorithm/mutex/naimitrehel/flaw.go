package naimitrehel

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	RootGives bool // R2a applies only to a root that is inside: one that waits acts as if it had the token
	StaysRoot bool // R2a does not set last: a root that waits or is inside stays the root
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
