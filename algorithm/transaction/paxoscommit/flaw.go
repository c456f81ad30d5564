package paxoscommit

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	ReportsNothing bool // C6: a REPORT has neither votes nor an outcome
	OneAcceptor    bool // C4a: the coordinator commits when one acceptor has all votes
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	none := ballot{by: process.None}
	return &machine{
		c: c, self: self, coordinator: c.Topology.Coordinator, flaw: flaw,
		acceptors: Acceptors(c.N, c.IntOption("f", 1)),
		voteTime:  process.Duration(c.IntOption("vote-time", 4)) * c.D(),
		retryTime: process.Duration(c.IntOption("retry-time", 8)) * c.D(),
		votes:     make([]uint64, c.N), merged: make([]uint64, c.N),
		promised: none, vb: none, best: none, yes: process.NewSet(c.N),
	}
}

// Acceptors returns the number of acceptors among n processes if f acceptors may crash.
func Acceptors(n, f int) int { return min(n, 2*min(f, n)+1) }
