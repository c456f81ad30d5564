package hirschbergsinclair

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	SideBySender    bool // the direction of a message is taken from its sender
	SleepersDiscard bool // H3a is missing: a process that does not take part discards a PROBE with a worse label
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
