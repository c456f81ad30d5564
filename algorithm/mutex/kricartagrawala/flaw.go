package kricartagrawala

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ForgetsDebts bool // R1 forgets the answers that are still owed to earlier requests
	EntersEarly  bool // R4 counts N others instead of N-1, and enters with one answer less
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
