package byelection

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the layer does otherwise. The zero Flaw is none.
type Flaw struct {
	FollowersLead bool // D2: everybody who knows a leader multicasts its value
	ForgetsValue  bool // D1: keeps the value only if the leader is known
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, _ *process.Config) process.Machine {
	return &machine{flaw: flaw, self: self, leader: process.None}
}
