package raymond

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is
// none.
type Flaw struct {
	ForgetsOthers bool // R6 is left out where R5 has just sent the token away
	EntersAtHead  bool // R5 lets in who is at the head of its own queue, with or without the token
	TurnsEarly    bool // R2 turns the pointer to the sender of REQ
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
