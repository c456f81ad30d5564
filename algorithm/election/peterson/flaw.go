package peterson

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	LastLeads     bool // P3b takes the process that is left active for the leader, not the label that it stands for
	SleepersRelay bool // P2 makes a relay of a process that has not started
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
