package check

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// In a transaction each requester votes once, and the search tries both votes. What a
// process has voted and decided is in its local state, which keeps it through crashes.
// The judges of atomic commitment remember nothing else.

// transaction reports whether the algorithm is one for atomic commitment.
func (c *Config) transaction() bool { return c.family() == process.Transaction }

func (c *Config) validateVotes() error {
	if c.transaction() && c.Entries > 1 {
		return fmt.Errorf("check: %d votes each: %s has one transaction; leave out the entries", c.Entries, c.Spec.Name)
	}
	return nil
}

// ballot is a vote or an outcome in a local state: 0 if there is none, otherwise the
// value plus 1.
type ballot uint8

func ballotOf(value int64) ballot {
	process.Assert(value == process.Abort || value == process.Commit, "a vote or an outcome is Abort or Commit")
	return ballot(value + 1)
}

func (b ballot) value() (value int64, known bool) { return int64(b) - 1, b > 0 }

// castVote lets the client of a process vote.
func (s *stepper) castVote(value int64) {
	s.next.asked++
	s.next.vote = ballotOf(value)
	s.step(process.Event{Kind: process.Propose, Value: value})
}

// concluded notes a decision.
func (s *stepper) concluded(outcome int64) {
	s.next.outcome = ballotOf(outcome)
	s.flags |= booked
	s.extra.decided = append(s.extra.decided, outcome)
}

// outcomeAfter returns the outcome of the process after the given number of decisions
// of the edge.
func (s *stepper) outcomeAfter(decided int) ballot {
	if decided == 0 || !s.cfg.transaction() {
		return s.before
	}
	return ballotOf(s.extra.decided[decided-1])
}

// ledger is the votes and outcomes of a state as judges see them. For process p it has
// those before a step.
type ledger struct {
	*scene
	p      process.ID
	before ballot
}

func (l ledger) Vote(q process.ID) (int64, bool) { return l.w.view(l.v[q]).state.vote.value() }

func (l ledger) Outcome(q process.ID) (int64, bool) {
	if q == l.p {
		return l.before.value()
	}
	return l.w.view(l.v[q]).state.outcome.value()
}

// ledgerOf is valid until sceneOf is called again.
func (w *worker) ledgerOf(v []uint32) ledger { return ledger{scene: w.sceneOf(v), p: process.None} }

// judgeOutcomes judges the decisions of p in a step, given its earlier decisions.
func (w *worker) judgeOutcomes(next []uint32, p process.ID, before ballot, outcomes []int64) *Violation {
	l := w.ledgerOf(next)
	l.p, l.before = p, before
	failed := w.cfg.Timing == AnyTime || w.failed(next)
	for _, outcome := range outcomes {
		for _, broken := range property.Outcome(l, l, p, outcome, failed) {
			if broken != nil && w.cfg.checks(broken.Property) {
				return broken
			}
		}
		l.before = ballotOf(outcome)
	}
	return nil
}

// noteLate notes that a timer expires. A process that has not voted yet is late, and
// may be the reason of an abort.
func (w *worker) noteLate(next []uint32, f *print) {
	if w.layout.late < 0 || next[w.layout.late] > 0 {
		return
	}
	for p := range w.layout.n {
		if w.view(next[p]).state.vote == 0 {
			w.set(next, f, w.layout.late, 1)
			return
		}
	}
}

// failed reports whether there was a fault so far, or a vote was late.
func (w *worker) failed(v []uint32) bool {
	for _, b := range [...]budget{crashes, drops, duplicates, suspicions} {
		if positive(v, w.layout.budgets[b]) {
			return true
		}
	}
	return positive(v, w.layout.late)
}

// judgeUndecided watches that at the end every process that voted has decided.
func (w *worker) judgeUndecided(v []uint32) *Violation {
	l := w.ledgerOf(v)
	for _, broken := range property.TransactionEnds(l, l) {
		if w.cfg.checks(broken.Property) {
			return broken
		}
	}
	return nil
}

// undecided reports whether a live process has voted and not decided. If only decision
// after repair is promised, that counts only while all processes are up.
func (w *worker) undecided(v []uint32, p process.ID) bool {
	l := w.ledgerOf(v)
	if !w.cfg.checks(process.NonBlocking) {
		for q := range process.ID(w.layout.n) {
			if l.Down(q) {
				return false
			}
		}
	}
	return !l.Down(p) && property.Undecided(l, p)
}

// endless is the property that a run violates in which a process is undecided forever.
func (c *Config) endless() process.Property {
	if c.checks(process.NonBlocking) {
		return process.NonBlocking
	}
	return process.RepairTermination
}
