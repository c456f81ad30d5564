package diffusion

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	FirstReply bool // O4: one reply is enough
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, breaks: c.Option("mode", deadlock.Break) == deadlock.Break,
		wait:  process.Duration(c.IntOption("suspicion-time", 8)) * c.D(),
		parts: make([]part, c.N),
	}
	m.forget()
	return m
}

// Over returns what makes the layers of a stack with the flaw.
func (flaw Flaw) Over(below *process.Spec) func(self process.ID, c *process.Config) process.Machine {
	top := *Spec
	top.New = flaw.New
	return process.Compose("", "", below, &top).New
}
