package twophase

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	VotesUnlogged  bool // T2: VOTE yes is sent, and PREPARED is not logged
	AbortsAlone    bool // T6: a process that is PREPARED for long aborts
	CommitUnlogged bool // T3: DECISION(commit) is sent, and COMMIT is not logged
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
