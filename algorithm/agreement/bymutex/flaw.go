package bymutex

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	NeverReads          bool // X2: writes at once
	LeavesBeforeWritten bool // X4: leaves when it has sent WRITE
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{c: c, flaw: flaw, self: self, keeper: c.Topology.Coordinator}
}
