package ringlist

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	RelayOnly  bool // L2 passes the list on without adding its own label
	NoTieBreak bool // of equals in the order of the election, the first on the list wins
}

// New makes a machine with the flaw that elects by label or by load.
func (flaw Flaw) New(self process.ID, c *process.Config, byLoad bool) process.Machine {
	m := New(self, c, byLoad).(*machine)
	m.flaw = flaw
	return m
}
