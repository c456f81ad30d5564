package raymond

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ForgetsOthers bool // R6 is skipped when R5 has just sent the token away
	EntersAtHead  bool // R5 lets a process at the head of its own queue enter without the token
	TurnsEarly    bool // R2 turns the pointer to the sender of REQ
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	m := newMachine(self, c).(*machine)
	m.flaw = flaw
	return m
}
