package centralclock

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	AnswersEarly  bool // R4a is missing: who waits for its stamp answers at once
	ForgetsItself bool // R2b is missing: the clock permits also while it waits or is inside
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
