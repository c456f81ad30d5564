// Package expect judges what servers know about names that are to be held again and again: the last
// hold in a rule is the one that ended last according to the history of the name, which servers keep
// in another way.
package expect

import (
	"slices"

	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/test/vopr/events"
	"github.com/conclave-io/conclave/internal/test/vopr/history"
)

// Judge is the record of the rules.
type Judge struct {
	run    *events.Run
	rules  map[name]*rule
	unused map[history.ClaimID]bool // their clients give the holds back unused
}

type name struct {
	class uint8
	name  string
}

// rule is a rule as it was seen first.
type rule struct {
	set    expect.Moment
	before []uint64 // the fences of the holds that had ended by then
	ends   int      // the most ends of holds that a server knew of the name
	cut    bool     // it knows fewer: a flood of other names has displaced them
}

// New returns the judge of a run.
func New(run *events.Run) *Judge {
	return &Judge{run: run, rules: make(map[name]*rule), unused: make(map[history.ClaimID]bool)}
}

// Unused records that the client of a claim gives it back without having used it.
func (j *Judge) Unused(claim history.ClaimID) { j.unused[claim] = true }

// Follow checks a state that no server had before. The function returns the claim with a fence, if any
// server has shown it.
func (j *Judge) Follow(v *registry.Version, claimOf func(fence uint64) (history.ClaimID, bool)) {
	for _, e := range v.Expected() {
		view, _, past := v.Explain(registry.Class(e.Class), e.Name, 0)
		known := j.rules[name{e.Class, e.Name}]
		if known == nil || known.set != e.Set {
			known = &rule{set: e.Set}
			for _, p := range past {
				known.before = append(known.before, p.Fence)
			}
			j.rules[name{e.Class, e.Name}] = known
			continue
		}
		if held := len(view.Holders) > 0; held != (e.Holder != nil) {
			j.run.Violate("expect", "%q is held: %v, and the rule says otherwise", e.Name, held)
		}
		known.cut = known.cut || len(past) < known.ends
		known.ends = len(past)
		if want := j.last(&e, known, past, claimOf); want != e.Last.Fence {
			j.run.Violate("expect", "%q: the rule knows the hold with fence %d as the last one, and it is %d", e.Name, e.Last.Fence, want)
		}
		j.run.Stats.Expected++
	}
}

// last returns the fence of the last hold that a rule has to know, given the ends of holds, the newest
// first. If a hold may have been unused, it is the one that the rule knows, as far as that is possible.
func (j *Judge) last(e *registry.Expected, known *rule, past []registry.Ended, claimOf func(uint64) (history.ClaimID, bool)) uint64 {
	for _, p := range past {
		if slices.Contains(known.before, p.Fence) {
			continue
		}
		claim, shown := claimOf(p.Fence)
		unused := p.How == registry.Released && j.unused[claim]
		same := p.Fence == e.Last.Fence && p.Until == e.Last.Until.Wall && p.How == registry.Ending(e.Last.How)
		if same && !unused || !unused && shown || p.How != registry.Released {
			return p.Fence
		}
	}
	if known.cut || slices.Contains(known.before, e.Last.Fence) {
		return e.Last.Fence // it was displaced, or ended in the entry that set the rule
	}
	return 0
}
