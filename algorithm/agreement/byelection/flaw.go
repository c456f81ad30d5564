package byelection

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the layer. The zero Flaw has none.
type Flaw struct {
	FollowersLead bool // D2: every process that knows a leader multicasts its own value
	ForgetsValue  bool // D1: keeps the value only if the leader is known
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, _ *process.Config) process.Machine {
	return &machine{flaw: flaw, self: self, leader: process.None}
}
