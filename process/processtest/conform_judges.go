package processtest

import (
	"cmp"
	"errors"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// checkInvariant shows the present state to the invariant of the Spec.
func (r *run) checkInvariant() error {
	if r.w.spec.Invariant == nil {
		return nil
	}
	g := process.Global{Config: r.w.c, Faults: r.faulty}
	for _, p := range r.w.procs {
		g.Machines = append(g.Machines, p.m)
		if p.down {
			g.Machines[p.id] = nil
		}
	}
	for i := range r.w.flights {
		if m := &r.w.flights[i].msg; !r.w.procs[m.To].down {
			g.Messages = append(g.Messages, m)
		}
	}
	slices.SortStableFunc(g.Messages, func(a, b *process.Message) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return r.verdict(property.Invariant(r.w.spec, &g))
}

// proposeAll lets every process of a synchronous consensus propose at the start, as it
// must.
func (r *run) proposeAll() error {
	if r.w.spec.Family != process.Agreement || !r.w.spec.Needs.Synchrony {
		return nil
	}
	for _, p := range r.w.procs {
		value := int64(r.rng.Intn(100))
		r.agreed.Propose(p.id, value)
		if err := r.give(p, process.Event{Kind: process.Propose, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// propose lets a process propose at any time, where that is allowed.
func (r *run) propose(p *proc, value int64) error {
	if r.w.spec.Needs.Synchrony {
		return nil
	}
	r.agreed.Propose(p.id, value)
	return r.give(p, process.Event{Kind: process.Propose, Value: value})
}

// concludeAgreement lets a run without faults calm down: then all have decided.
func (r *run) concludeAgreement() error {
	if r.w.spec.Family != process.Agreement || r.faults || !r.claims(process.Decision) {
		return nil
	}
	err := r.calmWhile(func(p *proc) bool { return r.agreed.Waits(p.id) })
	return errors.Join(err, r.verdict(property.Decision(scene{r.w}, r.agreed.Waits)))
}

// conclude lets an election that calms down have a result: when whatever is under
// way has ended, somebody asks for a last election, and then everyone who is up
// must follow the same process, which must be up.
func (r *run) conclude() error {
	if !r.claims(process.LeaderTermination) || r.faults && (!r.survives(process.CrashAny) || r.conditional()) {
		return nil
	}
	if err := r.quiet(); err != nil {
		return err
	}
	caller := r.find(func(*proc) bool { return true })
	if err := r.give(caller, process.Event{Kind: process.Campaign}); err != nil {
		return err
	}
	if err := r.quiet(); err != nil {
		return err
	}
	always := func(process.ID) bool { return true }
	if err := r.verdict(property.LeaderTermination(scene{r.w}, always)); err != nil {
		return err
	}
	never := func(_, _ process.ID) bool { return false }
	return r.verdict(property.Orphan(scene{r.w}, never, func(p, _ process.ID) bool { return p == caller.id }))
}

// quiet continues a run until no event is enabled, or for a long time if there always is
// one, as under a detector.
func (r *run) quiet() error {
	end := r.w.clock + 150*r.w.c.D()
	for i := 0; i < 20*actions && r.w.clock < end; i++ {
		if done, err := r.calm(); done || err != nil {
			return err
		}
	}
	// What is on its way arrives, so that nobody is judged in the middle of it.
	for i := 0; i < actions && len(r.w.flights) > 0; i++ {
		if err := r.w.deliver(0); err != nil {
			return err
		}
	}
	return nil
}

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
	err := r.calmWhile(func(p *proc) bool { return property.Undecided(r.votes, p.id) })
	return errors.Join(err, r.verdict(property.TransactionEnds(scene{r.w}, r.votes)...))
}
