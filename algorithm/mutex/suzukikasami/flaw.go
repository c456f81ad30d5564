package suzukikasami

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	DropsInside   bool // R2 throws a REQ away that comes while this process is inside
	AcceptsCopies bool // R3b is missing: a copy of the token is one, too
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
