package majority

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
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
