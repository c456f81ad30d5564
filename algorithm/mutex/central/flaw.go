package central

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	OwnFirst         bool // R2 grants a REQUEST of the coordinator's own whoever holds
	BaseSeen         bool // a client takes its Base for a fence that it has seen
	UnnumberedEnding bool // R6 takes any RELEASE of the holder for that of its present entry
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	if flaw.BaseSeen {
		m.fence = c.Base.Fence
	}
	return m
}
