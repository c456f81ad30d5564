package registry

import (
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/service/access"
)

// usage is what principals have, and what there is under prefixes with a quota. It is counted
// while there are rules. It follows from the rest of the state and is not part of it. Amounts
// of principals are left out if they are 0. Sessions without an owner are not counted. The sessions
// of a principal share its amount.
type usage struct {
	owners, prefixes map[string]*access.Amount
}

func add(a *access.Amount, sessions, claims, bytes int) {
	a.Sessions += uint64(sessions)
	a.Claims += uint64(claims)
	a.Bytes += uint64(bytes)
}

// settle removes the amount of a principal if it is 0.
func (u *usage) settle(owner string, a *access.Amount) {
	if *a == (access.Amount{}) {
		delete(u.owners, owner)
	}
}

// countSessions counts a session that begins or has ended.
func (r *Registry) countSessions(s *session, more int) {
	if r.usage != nil && s.owner != "" {
		if s.usage = r.usage.owners[s.owner]; s.usage == nil {
			s.usage = new(access.Amount)
			r.usage.owners[s.owner] = s.usage
		}
		add(s.usage, more, 0, 0)
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
		add(c.session.usage, 0, more, bytes)
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
		r.usage = &usage{make(map[string]*access.Amount), make(map[string]*access.Amount)}
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
	switch again := r.usage; {
	case (counted == nil) != (again == nil):
		return fmt.Errorf("with the rules %v, usage is counted: %v", r.rules.Mode(), counted != nil)
	case counted != nil && !same(counted.owners, again.owners):
		return fmt.Errorf("principals have%s, counted are%s", values(again.owners), values(counted.owners))
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
	return valueOf(r.usage.owners[principal])
}

func valueOf(a *access.Amount) access.Amount {
	if a == nil {
		return access.Amount{}
	}
	return *a
}

// exceeds reports whether a principal, or everybody under a prefix of the name, would exceed a
// quota, and fills in which one. The principal has what is given, or nothing if that is nil.
func (r *Registry) exceeds(owner string, most access.Amount, has *access.Amount, name string, more access.Amount, refusal *Result) bool {
	over := most.More(owner, valueOf(has), more)
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
