package centralclock

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	AnswersEarly  bool // R4a is missing: a process that waits for its stamp answers at once
	ForgetsItself bool // R2b is missing: the clock permits even while it waits or is inside
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
