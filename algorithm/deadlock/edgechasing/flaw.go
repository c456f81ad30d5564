package edgechasing

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoDebt      bool // D3 does not check whether the answer is still owed
	KeepsPassed bool // D1a forgets nothing, and a new number does not count
	OwnVictim   bool // D4: the process that finds the deadlock gives up itself
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw, breaks: c.Option("mode", deadlock.Break) == deadlock.Break,
		wait:   process.Duration(c.IntOption("suspicion-time", 8)) * c.D(),
		passed: make([]uint64, c.N), lent: make([]uint64, c.N),
	}
}

// Over returns what makes the layers of a stack with the flaw, for a Spec that composes
// the detector over another layer.
func (flaw Flaw) Over(below *process.Spec) func(self process.ID, c *process.Config) process.Machine {
	top := *Spec
	top.New = flaw.New
	return process.Compose("", "", below, &top).New
}
