package registry

import (
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/internal/service/access"
)

// setLevel changes the level, if it is still the one that the command names.
func (r *Registry) setLevel(c *Command) {
	if c.From != r.level || r.pinned(c.To) {
		return
	}
	if refusal := (Result{}); r.Forbids(c.Origin(), access.Upgrade, &refusal) {
		r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: refusal.Code})
		return
	}
	r.level, r.stay = c.To, c.Stay
	if !hasKeeps(r.level) {
		r.forgetKeeps()
	}
	if c.From != c.To {
		r.relevel()
	}
	r.put(Record{Origin: c.Origin(), Kind: "level", Reason: levels(c), Result: OK})
}

// administer carries out an operator's command without a session, and records it.
func (r *Registry) administer(c *Command, fx *Effects) (result Result) {
	switch c.Op {
	case OpGuard:
		result = r.setGuard(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "guard", Name: c.Name, Reason: c.Value, Result: result.Code})
	case OpEnd:
		owner := ""
		if s := r.sessions[c.Session]; s != nil {
			owner = s.owner
		}
		result = r.dismiss(c, fx)
		r.put(Record{Origin: c.Origin(), Kind: "end-session", Name: c.Session.String(), Owner: owner, Reason: c.Value, Result: result.Code})
	case OpAccess:
		before := r.rules
		result = r.setRules(c, fx)
		if changed := before != r.rules; c.Change != nil && (changed || result.Code != OK) {
			r.put(Record{Origin: c.Origin(), Kind: "access", Reason: c.Change.String(), Result: result.Code}) // without secrets
		}
	case OpNote:
		result = r.putNote(c)
	}
	return result
}

// Refound turns the state of a cluster into one from which a new cluster can begin. All
// sessions end, and all holds with them: nobody knows what their programs have acquired and
// released since, and the cluster that granted these holds is gone. All servers are forgotten.
// What stays are the guards, the history of holds, including those of the ended sessions, and
// the order of fences: new fences are larger than all that the old cluster gave according to
// this state, and larger than above, a fence known to have been given, or 0.
func (r *Registry) Refound(above uint64) error {
	// One epoch further would be enough, unless the old cluster's counter began a new epoch
	// after this state.
	epoch := max(r.epoch+2, above>>counterBits+1)
	if epoch > maxEpoch {
		return fmt.Errorf("fences: no epoch is left above %d: the largest is %d", epoch-1, maxEpoch)
	}
	r.frozen = nil
	r.end(slices.Collect(r.all()), Expired, new(Effects))
	r.members = make(map[uint64]Member)
	r.epoch, r.counter = epoch, 0
	if r.guarded != nil {
		r.thawGuarded().reseat(epoch)
		r.unsettled = false
	}
	r.put(Record{Kind: "restore", Reason: "a new cluster begins from a backup", Result: OK})
	return nil
}

// ForgetRules removes the access rules, as in a new cluster. Tokens, quotas and
// administrators are removed with them.
func (r *Registry) ForgetRules() {
	if r.rules == nil {
		return
	}
	r.frozen = nil
	r.replaceRules(access.New(access.Unset))
	r.put(Record{Kind: "access", Reason: "a restore has left out the rules of the backup", Result: OK})
}
