package paxos

import "github.com/conclave-io/conclave/process"

// Flaw selects the mistake of a broken variant of the algorithm. The zero Flaw has none.
type Flaw struct {
	Alone           bool // not a flaw: every proposer leads
	ForgetsAccepted bool // P3: a promise does not report what was accepted
	BreaksPromise   bool // P5a is missing: an acceptor accepts in a ballot below its promise
}

// New makes a machine with the flaw.
func (flaw Flaw) New(self process.ID, c *process.Config) process.Machine {
	none := ballot{by: process.None}
	return &machine{
		c: c, self: self, flaw: flaw, retry: process.Duration(c.IntOption("retry-time", 20)) * c.D(),
		promised: none, vb: none, best: none, leader: process.None,
		yes: process.NewSet(c.N), no: process.NewSet(c.N),
	}
}
