package waitforgraph

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	NoConfirmation bool // W3: a cycle in the reports is a deadlock
	OneSided       bool // W5 does not check whether the answer is still owed
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := &machine{
		c: c, self: self, flaw: flaw, breaks: c.Option("mode", deadlock.Break) == deadlock.Break,
		wait:       process.Duration(c.IntOption("suspicion-time", 8)) * c.D(),
		maintainer: process.None,
	}
	m.lacks, m.victim = process.NewSet(c.N), process.None
	return m
}

// Over returns what makes the layers of a stack with the flaw.
func (flaw Flaw) Over(below *process.Spec) func(self process.ID, c *process.Config) process.Machine {
	top := *Spec
	top.New = flaw.New
	return process.Compose("", "", below, &top).New
}
