package peering

// Newcomer is a connection that a peer dialled and on which it introduced itself, until it is
// admitted or refused.
type Newcomer[L comparable] struct {
	Lane  Lane
	Conn  L
	Hello Hello
	// From is where the connection comes from, for people. At is when the introduction arrived,
	// on the clock of this server, in ns.
	From string
	At   int64

	contested bool
	contest   contest
}

// Admission is a decision about a newcomer.
type Admission struct {
	Step Step
	// Refusal is set if the newcomer is refused.
	Refusal *Refusal
	// Redial is set if the newcomer is admitted and its server has refused this one before. It may
	// accept this server now, so the host dials it at once.
	Redial bool
}

// Step is what the host does about a newcomer.
type Step int

// The steps.
const (
	// Admitted: the newcomer is the connection that the peer dialled for its lane.
	Admitted Step = iota
	// Replace: close the connection of the same server that is [Peer.Inbound] for the lane, and
	// call Admit again after Leave, so that the order of messages holds.
	Replace
	// Wait: call Admit again after a ping interval.
	Wait
	// Reject: send the refusal and close the newcomer.
	Reject
)

// Admit decides about a newcomer at the server self. The host calls it again as the result says,
// with the number of frames that have arrived from the peer on all connections. late means that
// the time for the decision is over.
func (p *Peer[L]) Admit(self uint64, n *Newcomer[L], heard uint64, late bool) Admission {
	var none L
	if n.contested {
		switch verdict := p.look(n, heard); {
		case verdict == alive:
			return Admission{Step: Reject, Refusal: p.refuse(self, n)}
		case late:
			return Admission{Step: Reject, Refusal: Refuse(Busy, "server %d cannot tell yet whether an earlier connection of server %d is alive; trying again helps", self, n.Hello.Server)}
		case verdict == unclear:
			return Admission{Step: Wait}
		}
		n.contested, n.contest = false, contest{}
	}
	switch old, contested := p.seat(n); {
	case contested:
		p.question++
		n.contested, n.contest.question = true, p.question
		return Admission{Step: Wait}
	case old != none && late:
		return Admission{Step: Reject, Refusal: Refuse(Busy, "server %d still handles what came on an earlier connection of server %d; trying again helps", self, n.Hello.Server)}
	case old != none:
		return Admission{Step: Replace}
	}
	return Admission{Step: Admitted, Redial: p.refused != 0}
}

// contest is about a newcomer that has the id of a server with live connections. The server may
// have been started again, or have lost its data and come back, before its old connections were
// detected to be dead. So the newcomer waits until they end. It is refused only if the process
// behind them is alive: if it answers a question that was asked after the newcomer had introduced
// itself. What arrives on the connections without being asked for shows nothing: a process that
// was killed may have left megabytes in the buffers of a slow reader.
type contest struct {
	question uint64

	// For a peer whose release answers no questions. Its connections get the time of one ping to
	// end, and the newcomer is refused if something arrives on them after that.
	looked bool
	heard  uint64
}

// verdict is the result of looking at a contest.
type verdict int

const (
	unclear verdict = iota // look again after another ping
	gone                   // the other process is gone
	alive                  // the other process is alive
)

// look is called after each ping interval.
func (p *Peer[L]) look(n *Newcomer[L], heard uint64) verdict {
	switch c := &n.contest; {
	case !p.differs(n.Hello):
		return gone
	case p.known.Nonce == 0:
		return c.look(heard)
	case p.answered >= c.question:
		return alive
	}
	return unclear
}

func (c *contest) look(heard uint64) verdict {
	if c.looked && heard != c.heard {
		return alive
	}
	c.looked, c.heard = true, heard
	return unclear
}
