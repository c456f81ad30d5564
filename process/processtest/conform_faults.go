package processtest

import (
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// fault crashes a process or brings it back, as far as the algorithm knows what
// to do then. Detectors tell the truth, and everyone is told at once.
func (r *run) fault(p *proc) error {
	switch {
	case p.down && r.survives(process.AmnesiaRestart):
		if err := r.w.restart(p); err != nil {
			return err
		}
		if err := r.news(process.Event{Kind: process.Rejoin, Peer: p.id, Incarnation: p.incarnation}); err != nil {
			return err
		}
		return r.elect()
	case p.down:
		return nil
	case r.rng.Intn(2) == 0 && r.w.spec.Needs.Detector == process.UnreliableDetector:
		return r.suspicion(p)
	case r.alive() > 1:
		return r.crash(p)
	}
	return nil
}

func (r *run) crash(p *proc) error {
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

func (r *run) alive() int {
	n := 0
	for _, p := range r.w.procs {
		if !p.down {
			n++
		}
	}
	return n
}

// claims reports whether the spec promises the property in the mode of this run.
func (r *run) claims(property process.Property) bool {
	mode := r.w.c.Option("mode", "")
	for _, claim := range r.w.spec.Claims.Properties {
		if claim.Property == property && !claim.Fails && (claim.Mode == "" || claim.Mode == mode) {
			return true
		}
	}
	return false
}

// checkClients is the judge of mutual exclusion: it looks only at what clients
// were told.
func (r *run) checkClients() error {
	inside := 0
	for _, p := range r.w.procs {
		if p.inside {
			inside++
		}
	}
	if inside > 1 && r.claims(process.MutualExclusion) {
		return fmt.Errorf("%d processes are inside", inside)
	}
	return nil
}

// checkGrants compares the grants of a step with all before it.
func (r *run) checkGrants(fx *process.Effects) error {
	for i := range fx.Len() {
		e := fx.At(i)
		if e.Kind != process.EffectGrant || e.Internal {
			continue
		}
		if e.Fence <= r.highest && r.claims(process.FencesGrow) {
			return fmt.Errorf("fence %s is not larger than %s, that of an earlier grant", e.Fence, r.highest)
		}
		r.highest = max(r.highest, e.Fence)
	}
	return nil
}
