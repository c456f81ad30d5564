package processtest

import (
	"errors"
	"slices"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

// fault crashes a process or brings it back, as far as the algorithm claims to
// survive that in the mode of the run. Detectors tell the truth, and everyone is told at once.
func (r *run) fault(p *proc) error {
	switch {
	case p.down && r.survives(process.AmnesiaRestart):
		return r.restart(p)
	case p.down:
		return nil
	case r.rng.Intn(2) == 0 && r.w.spec.Needs.Detector == process.UnreliableDetector:
		return r.suspicion(p)
	case r.mayCrash(p) && r.expendable(p):
		return r.crash(p)
	}
	return nil
}

// mayCrash reports whether the algorithm claims to survive a crash of p now.
func (r *run) mayCrash(p *proc) bool {
	switch {
	case r.w.spec.Lies != nil:
		return false // a crash counts as a Byzantine process, and these runs do not count
	case p.id == r.special && !r.survives(process.CrashSpecial):
		return false
	case p.inside:
		return r.survives(process.CrashHolder)
	case p.waiting:
		return r.survives(process.CrashWaiter)
	}
	return r.survives(process.CrashBystander)
}

// firstSpecial returns who has a part at the start that others have not: the
// coordinator or commander, where there is one, or the process with the token.
func firstSpecial(spec *process.Spec, c *process.Config) process.ID {
	if property.HasSpecial(spec) {
		return c.Topology.Coordinator
	}
	return process.None
}

// expendable reports whether p can be spared: somebody else is up. Where the machines
// find out by themselves who is there, that somebody must have had the time to
// learn what p knows, or nobody could.
func (r *run) expendable(p *proc) bool {
	for _, q := range r.w.procs {
		if q != p && !q.down && (!r.w.spec.Has(process.Detector) || q.incarnation == 1 || r.w.clock >= q.since+20*r.w.c.D()) {
			return true
		}
	}
	return false
}

// restart brings a process back. Its detector starts again and reports which processes
// are down. The others learn that it is back.
func (r *run) restart(p *proc) error {
	if err := r.w.restart(p); err != nil {
		return err
	}
	var err error
	if !r.w.spec.Has(process.Detector) {
		err = r.news(process.Event{Kind: process.Rejoin, Peer: p.id, Incarnation: p.incarnation})
	}
	for _, q := range r.w.procs {
		if q.down && err == nil && r.w.spec.Needs.Detector == process.ReliableDetector {
			err = r.give(p, process.Event{Kind: process.Fail, Peer: q.id})
		}
	}
	return errors.Join(err, r.elect())
}

func (r *run) crash(p *proc) error {
	r.agreed.Start(p.id)
	r.faulty = true
	r.w.crash(p, r.rng.Intn(p.lastSends+1))
	r.w.printf("%s crashes\n", r.w.name(p.id))
	if r.w.spec.Needs.Detector == process.ReliableDetector {
		if err := r.news(process.Event{Kind: process.Fail, Peer: p.id}); err != nil {
			return err
		}
	}
	return r.elect()
}

// suspicion is wrong, and taken back.
func (r *run) suspicion(p *proc) error {
	r.faulty = true
	if err := r.news(process.Event{Kind: process.Suspect, Peer: p.id}); err != nil {
		return err
	}
	return r.news(process.Event{Kind: process.Trust, Peer: p.id})
}

// elect stands for the election below an algorithm that needs one.
func (r *run) elect() error {
	if !r.w.spec.Needs.Elector {
		return nil
	}
	r.calls = false
	r.round++
	var leader *proc
	for _, p := range r.w.procs {
		if !p.down {
			leader = p
		}
	}
	term := process.MakeTerm(r.round, leader.id)
	for _, p := range r.w.procs {
		if p.down {
			continue
		}
		if err := r.give(p, process.Event{Kind: process.Elected, Peer: leader.id, Term: term}); err != nil {
			return err
		}
	}
	return nil
}

// news tells everyone else alive.
func (r *run) news(ev process.Event) error {
	for _, p := range r.w.procs {
		if p.down || p.id == ev.Peer {
			continue
		}
		if err := r.give(p, ev); err != nil {
			return err
		}
	}
	return nil
}

// claims reports whether the spec promises the property in the mode of this run.
func (r *run) claims(property process.Property) bool {
	mode := r.w.spec.Mode(r.w.c)
	return slices.ContainsFunc(r.w.spec.Claims.Properties, func(c process.Claim) bool {
		return c.Property == property && c.Holds(mode)
	})
}

// conditional reports whether crashes are survived under a condition, such as a majority
// that stays up. No run here keeps to it, so with faults only safety can be judged.
func (r *run) conditional() bool {
	return slices.ContainsFunc(r.w.spec.Claims.Survives, func(v process.Survival) bool {
		return process.CrashBystander <= v.Fault && v.Fault <= process.CrashAny && v.When != ""
	})
}

// scene is the present state as judges see it.
type scene struct{ *world }

func (s scene) Config() *process.Config   { return s.c }
func (s scene) Waiting(p process.ID) bool { return s.procs[p].waiting }
func (s scene) Inside(p process.ID) bool  { return s.procs[p].inside }
func (s scene) Down(p process.ID) bool    { return s.procs[p].down }

func (s scene) Leader(p process.ID) process.ID {
	if s.Down(p) {
		return process.None
	}
	return s.procs[p].leader
}

// verdict makes an error of the first thing that a judge says, if the Spec claims the
// property.
func (r *run) verdict(said ...*property.Violation) error {
	for _, v := range said {
		if v != nil && (r.claims(v.Property) || v.Property == process.StateInvariant) {
			return errors.New(v.String())
		}
	}
	return nil
}

// checkClients judges the latest entry once its client knows of it.
func (r *run) checkClients() error {
	return r.verdict(property.AtMost(scene{r.w}, 1, r.entered))
}

// drain lets a run calm down: messages arrive, whoever is inside leaves, and when
// nothing else is left timers run out. Then nobody may be left waiting.
func (r *run) drain() error {
	if !r.claims(process.Progress) || r.faults && (!r.w.spec.Needs.Elector && !r.w.spec.Has(process.Detector) || r.conditional()) {
		return nil
	}
	for range 20 * actions {
		if r.find(func(p *proc) bool { return p.waiting }) == nil {
			return nil
		}
		if done, err := r.calm(); err != nil || done {
			return errors.Join(err, r.verdict(property.Progress(scene{r.w}, 0)))
		}
		if err := r.checkClients(); err != nil {
			return err
		}
	}
	return errors.New("somebody still waits after a very long time")
}

// calm takes one action of drain, or reports that there is none.
func (r *run) calm() (done bool, err error) {
	if len(r.w.flights) > 0 {
		return false, r.w.deliver(0)
	}
	if p := r.find(func(p *proc) bool { return p.inside }); p != nil {
		p.inside = false
		return false, r.give(p, process.Event{Kind: process.Release})
	}
	if r.calls {
		return false, r.elect()
	}
	if r.w.spec.Needs.Synchrony {
		more, err := r.w.pass(endOfTime)
		return !more, err
	}
	if p := r.find(func(p *proc) bool { return len(p.timers) > 0 }); p != nil {
		return false, r.w.fire(p, p.timers[r.rng.Intn(len(p.timers))].timerKey)
	}
	return true, nil
}

// calmWhile lets a run calm down as long as a test holds for a process, for a long time.
func (r *run) calmWhile(test func(*proc) bool) error {
	for i := 0; i < 20*actions && r.find(test) != nil; i++ {
		if done, err := r.calm(); done || err != nil {
			return err
		}
	}
	return nil
}

// find returns a random process that is up and for which the test holds, or nil.
func (r *run) find(test func(*proc) bool) *proc {
	n := len(r.w.procs)
	first := r.rng.Intn(n)
	for i := range n {
		if p := r.w.procs[(first+i)%n]; !p.down && test(p) {
			return p
		}
	}
	return nil
}

// checkAnnounced judges the grants, the leaders and the decisions of a step by all before it.
func (r *run) checkAnnounced(p *proc, fx *process.Effects) error {
	for i := range fx.Len() {
		if err := r.verdict(r.judge(p, fx.At(i))...); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) judge(p *proc, e *process.Effect) []*property.Violation {
	s, family := scene{r.w}, r.w.spec.Family
	switch {
	case e.Kind == process.EffectElect:
		earlier, known := r.leaders[e.Term]
		r.leaders[e.Term], p.leader = e.Peer, e.Peer
		if known {
			return []*property.Violation{property.LeaderAgreement(s, p.id, e.Peer, e.Term, earlier)}
		}
	case e.Internal:
	case e.Kind == process.EffectDecide && family == process.Agreement:
		return r.agreed.Decide(s, p.id, e.Value)
	case e.Kind == process.EffectDecide && family == process.Transaction:
		return r.votes.Decide(s, p.id, e.Value, r.faulty || r.hasty)
	case e.Kind == process.EffectCampaign:
		r.calls = true
	case e.Kind == process.EffectGrant:
		before := r.highest
		r.entered, r.highest = p.id, max(before, e.Fence)
		return []*property.Violation{property.FencesGrow(s, p.id, e.Fence, before)}
	}
	return nil
}
