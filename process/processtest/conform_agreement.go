package processtest

import (
	"errors"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/property"
)

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

// checkDecision judges a decision.
func (r *run) checkDecision(p *proc, value int64) error {
	for _, v := range r.agreed.Decide(scene{r.w}, p.id, value) {
		if err := r.verdict(v); err != nil {
			return err
		}
	}
	return nil
}

// concludeAgreement lets a run without faults calm down: then all have decided.
func (r *run) concludeAgreement() error {
	if r.w.spec.Family != process.Agreement || r.faults || !r.claims(process.Decision) {
		return nil
	}
	waits := func(p *proc) bool { return r.agreed.Waits(p.id) }
	for i := 0; i < 20*actions && r.find(waits) != nil; i++ {
		if done, err := r.calm(); done || err != nil {
			return errors.Join(err, r.verdict(property.Decision(scene{r.w}, r.agreed.Waits)))
		}
	}
	return r.verdict(property.Decision(scene{r.w}, r.agreed.Waits))
}
