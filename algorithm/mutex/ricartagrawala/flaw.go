package ricartagrawala

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoTieBreak bool // a request of the same time as the own one is answered at once, whoever made it
	DeafClock  bool // the clock counts the own requests and is not raised by those of others
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
