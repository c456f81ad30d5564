package processtest

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// checkLeader compares what a process says about a term with what others said.
func (r *run) checkLeader(p *proc, e *process.Effect) error {
	if known, ok := r.leaders[e.Term]; ok && known != e.Peer && r.claims(process.LeaderAgreement) {
		return fmt.Errorf("the leader of round %d is %s, and was %s", e.Term.Round(), r.w.name(e.Peer), r.w.name(known))
	}
	r.leaders[e.Term] = e.Peer
	p.leader = e.Peer
	return nil
}

// conclude lets an election that calms down have a result: when whatever is under
// way has ended, somebody asks for a last election, and then everyone who is up
// must follow the same process, which must be up.
func (r *run) conclude() error {
	if !r.claims(process.LeaderTermination) || r.faults && !r.survives(process.CrashAny) {
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
	leader := r.w.procs[max(0, caller.leader)]
	for _, p := range r.w.procs {
		if !p.down && p.leader != caller.leader || leader.down || caller.leader == process.None {
			return fmt.Errorf("after the last election %s follows %s, and %s follows %s", r.w.name(p.id),
				r.w.name(p.leader), r.w.name(caller.id), r.w.name(caller.leader))
		}
	}
	return nil
}

// quiet lets a run go on until nothing is left to happen, or for a long time if
// something always is, as under a detector.
func (r *run) quiet() error {
	end := r.w.clock + 150*r.w.c.D()
	for i := 0; i < 20*actions && r.w.clock < end; i++ {
		if done, err := r.calm(); done || err != nil {
			return err
		}
	}
	return nil
}
