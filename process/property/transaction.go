package property

import "github.com/conclave-io/conclave/process"

// The judges of atomic commitment. There is one transaction. A process votes once, and
// what it has decided is known forever: a crash does not undo it.

// Ledger is what all processes have voted and decided so far.
type Ledger interface {
	// Vote returns the vote of a process, and whether it has voted.
	Vote(p process.ID) (vote int64, voted bool)
	// Outcome returns what a process has decided last, and whether it has decided.
	Outcome(p process.ID) (outcome int64, decided bool)
}

// Outcome judges that p decides, given the votes and decisions before. Failed says that
// something has gone wrong so far: a fault, a timer that was too short, or a vote that
// came after a timer had run out.
func Outcome(s Scene, l Ledger, p process.ID, outcome int64, failed bool) []*Violation {
	return []*Violation{
		stableDecision(s, l, p, outcome), atomicity(s, l, p, outcome),
		unanimousCommit(s, l, p, outcome), nonTriviality(s, l, p, outcome, failed),
	}
}

func stableDecision(s Scene, l Ledger, p process.ID, outcome int64) *Violation {
	if before, decided := l.Outcome(p); decided && before != outcome {
		return broken(process.StableDecision, p, "%s %s after it had %s", s.Config().Text(p), done(outcome), done(before))
	}
	return nil
}

func atomicity(s Scene, l Ledger, p process.ID, outcome int64) *Violation {
	for q := range all(s) {
		if other, decided := l.Outcome(q); q != p && decided && other != outcome {
			return broken(process.Atomicity, p, "%s %s: %s %s", s.Config().Text(p), done(outcome), s.Config().Text(q), done(other))
		}
	}
	return nil
}

func unanimousCommit(s Scene, l Ledger, p process.ID, outcome int64) *Violation {
	for q := range all(s) {
		switch vote, voted := l.Vote(q); {
		case outcome != process.Commit || voted && vote == process.Commit:
		case voted:
			return broken(process.UnanimousCommit, p, "%s committed: %s voted no", s.Config().Text(p), s.Config().Text(q))
		default:
			return broken(process.UnanimousCommit, p, "%s committed: %s has not voted", s.Config().Text(p), s.Config().Text(q))
		}
	}
	return nil
}

// nonTriviality judges the first abort. Those that follow it have a reason.
func nonTriviality(s Scene, l Ledger, p process.ID, outcome int64, failed bool) *Violation {
	if failed || outcome == process.Commit {
		return nil
	}
	for q := range all(s) {
		vote, voted := l.Vote(q)
		if _, decided := l.Outcome(q); decided || !voted || vote != process.Commit {
			return nil
		}
	}
	return broken(process.NonTriviality, p, "%s aborted: everybody voted yes, and nothing had failed", s.Config().Text(p))
}

func done(outcome int64) string {
	if outcome == process.Commit {
		return "committed"
	}
	return "aborted"
}

// Undecided reports whether a process has voted and not decided.
func Undecided(l Ledger, p process.ID) bool {
	_, voted := l.Vote(p)
	_, decided := l.Outcome(p)
	return voted && !decided
}

// TransactionEnds judges a state in which no event is enabled.
func TransactionEnds(s Scene, l Ledger) []*Violation {
	waiting := list(s, func(p process.ID) bool { return !s.Down(p) && Undecided(l, p) })
	if waiting == "" {
		return nil
	}
	blocked := broken(process.NonBlocking, process.None, "%s voted and never decided: no event is enabled", waiting)
	if list(s, s.Down) != "" {
		return []*Violation{blocked}
	}
	return []*Violation{blocked, broken(process.RepairTermination, process.None, "%s voted and never decided: everybody is up, and no event is enabled", waiting)}
}

// Votes is a Ledger for hosts that take one run at a time.
type Votes struct{ votes, outcomes []int64 } // by process: what it is, plus 1; 0: not yet

// NewVotes returns those of a run that begins.
func NewVotes(c *process.Config) *Votes {
	return &Votes{votes: make([]int64, c.N), outcomes: make([]int64, c.N)}
}

// Cast notes a vote. Only the first one counts.
func (v *Votes) Cast(p process.ID, vote int64) {
	if v.votes[p] == 0 {
		v.votes[p] = vote + 1
	}
}

// Vote is of Ledger.
func (v *Votes) Vote(p process.ID) (vote int64, voted bool) { return v.votes[p] - 1, v.votes[p] > 0 }

// Outcome is of Ledger.
func (v *Votes) Outcome(p process.ID) (outcome int64, decided bool) {
	return v.outcomes[p] - 1, v.outcomes[p] > 0
}

// Decide notes a decision and returns what is wrong with it by each property.
func (v *Votes) Decide(s Scene, p process.ID, outcome int64, failed bool) []*Violation {
	wrong := Outcome(s, v, p, outcome, failed)
	v.outcomes[p] = outcome + 1
	return wrong
}
