package ringactivelist

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	PassesFirst bool // A2 passes the label of the other on before it sends the own one
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
