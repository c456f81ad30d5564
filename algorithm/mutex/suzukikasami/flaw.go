package suzukikasami

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	DropsInside   bool // R2 drops a REQ that comes while this process is inside
	AcceptsCopies bool // R3b is missing: a duplicate of the token counts as the token
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
