package lease

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	FreesAny     bool // R6c does not check whose lock it is
	GrantsAtOnce bool // R10 is missing
}

// New makes a machine of the lease at one server with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}

// NewRedlock makes a machine of Redlock with the flaw.
func (flaw Flaw) NewRedlock(self process.ID, c *process.Config) process.Machine {
	m := newRedlock(self, c).(*machine)
	m.flaw = flaw
	return m
}
