package processtest

import (
	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// checkLeader compares what a process says about a term with what others said.
func (r *run) checkLeader(p *proc, e *process.Effect) error {
	earlier, known := r.leaders[e.Term]
	r.leaders[e.Term], p.leader = e.Peer, e.Peer
	if !known {
		return nil
	}
	return r.verdict(property.LeaderAgreement(scene{r.w}, p.id, e.Peer, e.Term, earlier))
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
