package registry

import (
	"fmt"
	"maps"

	"github.com/conclave-io/conclave/service/access"
)

// usage is what principals have, and what there is under prefixes with a quota. It is counted
// while there are rules. It follows from the rest of the state and is not part of it. Amounts
// of 0 are left out. Sessions without an owner are not counted.
type usage struct {
	owners, prefixes map[string]access.Amount
}

func add(to map[string]access.Amount, who string, sessions, claims, bytes int) {
	a := to[who]
	a.Sessions += uint64(sessions)
	a.Claims += uint64(claims)
	a.Bytes += uint64(bytes)
	if a == (access.Amount{}) {
		delete(to, who)
		return
	}
	to[who] = a
}

// countSessions counts a session that begins or has ended.
func (r *Registry) countSessions(s *session, more int) {
	if r.usage != nil && s.owner != "" {
		add(r.usage.owners, s.owner, more, 0, 0)
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
		add(r.usage.owners, c.session.owner, 0, more, bytes)
	}
	for _, q := range r.rules.Prefixes(c.resource.name) {
		add(r.usage.prefixes, q.Prefix, 0, more, bytes)
	}
}

// recount counts everything again, if there are rules.
func (r *Registry) recount() {
	r.usage = nil
	if r.rules.Mode() == access.Closed {
		r.usage = &usage{make(map[string]access.Amount), make(map[string]access.Amount)}
	}
	if r.usage == nil {
		return
	}
	for s := range r.all() {
		r.countSessions(s, 1)
		for _, c := range s.sortedClaims(nil) {
			r.countClaims(c, 1, len(c.value))
		}
	}
}

// checkUsage compares the counts with a recount.
func (r *Registry) checkUsage() error {
	counted := r.usage
	r.recount()
	again := r.usage
	r.usage = counted
	switch {
	case (counted == nil) != (again == nil):
		return fmt.Errorf("with the rules %v, usage is counted: %v", r.rules.Mode(), counted != nil)
	case counted != nil && !maps.Equal(counted.owners, again.owners):
		return fmt.Errorf("principals have %v, counted are %v", again.owners, counted.owners)
	case counted != nil && !maps.Equal(counted.prefixes, again.prefixes):
		return fmt.Errorf("prefixes have %v, counted are %v", again.prefixes, counted.prefixes)
	}
	return nil
}

// Usage returns what a principal has. It is counted only while there are rules.
func (r *Registry) Usage(principal string) access.Amount {
	if r.usage == nil {
		return access.Amount{}
	}
	return r.usage.owners[principal]
}

// exceeds reports whether a principal, or everybody under a prefix of the name, would exceed a
// quota, and fills in which one.
func (r *Registry) exceeds(owner, name string, more access.Amount, refusal *Result) bool {
	over := r.rules.Most(owner).More(owner, r.usage.owners[owner], more)
	if name != "" {
		more.Sessions = 0
		for _, q := range r.rules.Prefixes(name) {
			if over != nil {
				break
			}
			if over = q.Most.More("", r.usage.prefixes[q.Prefix], more); over != nil {
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
