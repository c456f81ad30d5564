package central

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	OwnFirst         bool // R2 grants the coordinator's own REQUEST even while the resource is taken
	BaseSeen         bool // a client treats its Base as a fence that it has seen
	UnnumberedEnding bool // R6 treats any RELEASE of the holder as that of its present entry
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
