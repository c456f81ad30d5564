package processtest

import (
	"errors"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// vote lets a process vote, once, and yes more often than no.
func (r *run) vote(p *proc) error {
	if _, voted := r.votes.Vote(p.id); voted {
		return nil
	}
	vote := process.Commit
	if r.rng.Intn(4) == 0 {
		vote = process.Abort
	}
	r.votes.Cast(p.id, vote)
	return r.give(p, process.Event{Kind: process.Propose, Value: vote})
}

// checkOutcome judges a decision.
func (r *run) checkOutcome(p *proc, outcome int64) error {
	for _, v := range r.votes.Decide(scene{r.w}, p.id, outcome, r.faulty || r.hasty) {
		if err := r.verdict(v); err != nil {
			return err
		}
	}
	return nil
}

// concludeTransaction brings everybody back and lets the run calm down: then all who
// have voted have decided.
func (r *run) concludeTransaction() error {
	if r.w.spec.Family != process.Transaction || !r.claims(process.RepairTermination) || r.faults && r.conditional() {
		return nil
	}
	for _, p := range r.w.procs {
		if p.down {
			if !r.survives(process.AmnesiaRestart) {
				return nil
			}
			if err := r.restart(p); err != nil {
				return err
			}
		}
	}
	undecided := func(p *proc) bool { return property.Undecided(r.votes, p.id) }
	for i := 0; i < 20*actions && r.find(undecided) != nil; i++ {
		if done, err := r.calm(); done || err != nil {
			return errors.Join(err, r.transactionEnds())
		}
	}
	return r.transactionEnds()
}

func (r *run) transactionEnds() error {
	for _, v := range property.TransactionEnds(scene{r.w}, r.votes) {
		if err := r.verdict(v); err != nil {
			return err
		}
	}
	return nil
}
