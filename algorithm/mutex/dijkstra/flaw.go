package dijkstra

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	SendsOnce bool // D6 does not send again
	Alike     bool // the bottom uses the rule of the others
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
