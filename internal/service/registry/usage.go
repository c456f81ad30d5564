package registry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/service/access"
)

// usage is what principals have, and what there is under prefixes with a quota. It is counted
// while there are rules. It follows from the rest of the state and is not part of it. Amounts
// of principals are left out if they are 0. Sessions without an owner are not counted. The sessions
// of a principal share its amount.
type usage struct {
	owners   map[string]*owner
	prefixes map[string]*access.Amount
}

// owner is what the sessions of a principal have together, and what the rules let them do.
type owner struct {
	access.Amount
	// rights and most follow from these rules, or rules is nil.
	rules  *access.State
	rights *access.Rights
	most   access.Amount
}

// ownerOf returns what a principal has and may do. It is computed once for each change of the rules,
// and each time for a principal without sessions, for which known is nil.
func (r *Registry) ownerOf(known *owner, principal string) *owner {
	if known == nil {
		known = new(owner)
	}
	if known.rules != r.rules {
		known.rules, known.rights, known.most = r.rules, r.rules.Rights(principal), r.rules.Most(principal)
	}
	return known
}

// forget drops what was computed from rules that are no longer in force. Otherwise they would stay in
// memory for as long as an idle session.
func (u *usage) forget() {
	if u == nil {
		return
	}
	for _, principal := range slices.Sorted(maps.Keys(u.owners)) {
		o := u.owners[principal]
		o.rules, o.rights = nil, nil
	}
}

func add(a *access.Amount, sessions, claims, bytes int) {
	a.Sessions += uint64(sessions)
	a.Claims += uint64(claims)
	a.Bytes += uint64(bytes)
}

// settle removes the amount of a principal if it is 0.
func (u *usage) settle(principal string, o *owner) {
	if o.Amount == (access.Amount{}) {
		delete(u.owners, principal)
	}
}

// countSessions counts a session that begins or has ended.
func (r *Registry) countSessions(s *session, more int) {
	if r.usage != nil && s.owner != "" {
		if s.usage = r.usage.owners[s.owner]; s.usage == nil {
			s.usage = new(owner)
			r.usage.owners[s.owner] = s.usage
		}
		add(&s.usage.Amount, more, 0, 0)
		r.usage.settle(s.owner, s.usage)
	}
}

// countClaims counts a claim that was made or has ended, and bytes of its value.
func (r *Registry) countClaims(c *claim, more, bytes int) {
	if r.usage != nil { // a separate function, so that it costs nothing without rules
		r.countClaim(c, more, bytes)
	}
}

func (r *Registry) countClaim(c *claim, more, bytes int) {
	if c.session.owner != "" {
		add(&c.session.usage.Amount, 0, more, bytes)
		r.usage.settle(c.session.owner, c.session.usage)
	}
	for _, q := range r.rules.Prefixes(c.resource.name) {
		add(r.usage.prefixes[q.Prefix], 0, more, bytes)
	}
}

// recount counts everything again, if there are rules.
func (r *Registry) recount() {
	r.usage = nil
	if r.rules.Mode() == access.Closed {
		r.usage = &usage{make(map[string]*owner), make(map[string]*access.Amount)}
	}
	if r.usage == nil {
		return
	}
	for _, q := range r.rules.Quotas() {
		if q.Who == "" {
			r.usage.prefixes[q.Prefix] = new(access.Amount)
		}
	}
	for s := range r.all() {
		r.countSessions(s, 1)
		for _, c := range s.sortedClaims(nil) {
			r.countClaims(c, 1, len(c.value))
		}
	}
}

// checkUsage compares the counts with a recount, which it keeps.
func (r *Registry) checkUsage() error {
	counted := r.usage
	r.recount()
	same := func(a, b map[string]*access.Amount) bool {
		return maps.EqualFunc(a, b, func(a, b *access.Amount) bool { return *a == *b })
	}
	owners := func(u *usage) map[string]*access.Amount {
		amounts := make(map[string]*access.Amount)
		for _, principal := range slices.Sorted(maps.Keys(u.owners)) {
			amounts[principal] = &u.owners[principal].Amount
		}
		return amounts
	}
	switch again := r.usage; {
	case (counted == nil) != (again == nil):
		return fmt.Errorf("with the rules %v, usage is counted: %v", r.rules.Mode(), counted != nil)
	case counted != nil && !same(owners(counted), owners(again)):
		return fmt.Errorf("principals have%s, counted are%s", values(owners(again)), values(owners(counted)))
	case counted != nil && !same(counted.prefixes, again.prefixes):
		return fmt.Errorf("prefixes have%s, counted are%s", values(again.prefixes), values(counted.prefixes))
	}
	return nil
}

func values(amounts map[string]*access.Amount) (text string) {
	for _, who := range slices.Sorted(maps.Keys(amounts)) {
		text += fmt.Sprintf(" %s: %+v", who, *amounts[who])
	}
	return text
}

// Usage returns what a principal has. It is counted only while there are rules.
func (r *Registry) Usage(principal string) access.Amount {
	if r.usage == nil {
		return access.Amount{}
	}
	if o := r.usage.owners[principal]; o != nil {
		return o.Amount
	}
	return access.Amount{}
}

// exceeds reports whether a principal, or everybody under a prefix of the name, would exceed a
// quota, and fills in which one.
func (r *Registry) exceeds(principal string, has *owner, name string, more access.Amount, refusal *Result) bool {
	over := has.most.More(principal, has.Amount, more)
	if name != "" {
		more.Sessions = 0
		for _, q := range r.rules.Prefixes(name) {
			if over != nil {
				break
			}
			if over = q.Most.More("", *r.usage.prefixes[q.Prefix], more); over != nil {
				over.Who = access.PrefixQuota(q.Prefix)
			}
		}
	}
	if over == nil {
		return false
	}
	r.deeds.overQuota(over.Kind)
	*refusal = Result{Code: Quota, Message: over.Error()}
	return true
}
