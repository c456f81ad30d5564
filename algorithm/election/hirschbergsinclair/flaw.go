package hirschbergsinclair

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	SideBySender    bool // the direction of a message is taken from its sender
	SleepersDiscard bool // H3a is left out: a process that does not take part discards the PROBE of a worse one
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
