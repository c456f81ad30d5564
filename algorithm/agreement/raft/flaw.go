package raft

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	VotesTwice      bool // R3: votes for every candidate of a term
	IgnoresLogs     bool // R3: votes without comparing logs
	CommitsOldTerms bool // R6: counts entries of earlier terms, too
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, flaw: flaw,
		election:  process.Duration(c.IntOption("election-time", 12)) * c.D(),
		heartbeat: process.Duration(c.IntOption("heartbeat-time", 4)) * c.D(),
		votedFor:  process.None, leader: process.None, votes: process.NewSet(c.N),
		next: make([]uint64, c.N), match: make([]uint64, c.N),
	}
}
