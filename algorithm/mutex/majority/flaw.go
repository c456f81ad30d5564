package majority

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	Half        bool // half of the votes are enough
	DropsFences bool // R6c does not note the fence of a RELEASE
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	if flaw.Half {
		m.needed = max(1, m.replicas/2)
	}
	return m
}
