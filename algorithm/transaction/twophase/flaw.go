package twophase

import "github.com/conclave-io/conclave/process"

// Flaw is what a broken variant of the algorithm does otherwise. The zero Flaw is none.
type Flaw struct {
	VotesUnlogged  bool // T2: VOTE yes leaves, and PREPARED is not logged
	AbortsAlone    bool // T6: whoever is PREPARED for long aborts
	CommitUnlogged bool // T3: DECISION(commit) leaves, and COMMIT is not logged
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, flaw: flaw,
		nothing:   c.Option("mode", presumedAbort) == presumedNothing,
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		yes:       process.NewSet(c.N), no: process.NewSet(c.N), acked: process.NewSet(c.N),
	}
}
