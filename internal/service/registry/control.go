package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/conclave-io/conclave/internal/service/access"
)

// control enforces rules of access and quotas. It counts what principals have, and what there is
// under prefixes with a quota. The counts follow from the rest of the state and are not part of it.
// Amounts of principals are left out if they are 0. Sessions without an owner are not counted. The
// sessions of a principal share its amount. While no rules are enforced control is nil, and allows
// everything.
type control struct {
	rules    *access.State // in force
	owners   map[string]*owner
	prefixes map[string]*access.Amount
}

// newControl returns a control that has counted nothing, or nil if the rules are not enforced.
func newControl(rules *access.State) *control {
	if rules.Mode() != access.Closed {
		return nil
	}
	ctl := &control{rules: rules, owners: make(map[string]*owner), prefixes: make(map[string]*access.Amount)}
	for _, q := range rules.Quotas() {
		if q.Who == "" {
			ctl.prefixes[q.Prefix] = new(access.Amount)
		}
	}
	return ctl
}

// owner is what the sessions of a principal have together, and what the rules let them do.
type owner struct {
	access.Amount
	// principal, rights and most are set if rules is not nil, and follow from these.
	rules     *access.State
	principal string
	rights    *access.Rights
	most      access.Amount
}

// ownerOf returns what a principal has and may do. It is computed once for each change of the rules,
// and each time for a principal without sessions, for which known is nil.
func (ctl *control) ownerOf(known *owner, principal string) *owner {
	if known == nil {
		known = new(owner)
	}
	if known.rules != ctl.rules {
		known.rules, known.principal, known.rights, known.most = ctl.rules, principal, ctl.rules.Rights(principal), ctl.rules.Most(principal)
	}
	return known
}

// replace puts rules in force that have quotas for the same prefixes. It drops what was computed
// from the old ones, which would otherwise stay in memory for as long as an idle session.
func (ctl *control) replace(rules *access.State) {
	if ctl == nil {
		return
	}
	ctl.rules = rules
	for _, principal := range slices.Sorted(maps.Keys(ctl.owners)) {
		o := ctl.owners[principal]
		o.rules, o.rights = nil, nil
	}
}

func add(a *access.Amount, sessions, claims, bytes int) {
	a.Sessions += uint64(sessions)
	a.Claims += uint64(claims)
	a.Bytes += uint64(bytes)
}

// settle removes the amount of a principal if it is 0.
func (ctl *control) settle(principal string, o *owner) {
	if o.Amount == (access.Amount{}) {
		delete(ctl.owners, principal)
	}
}

// countSessions counts a session that begins or has ended.
func (ctl *control) countSessions(s *session, more int) {
	if ctl != nil && s.owner != "" {
		if s.usage = ctl.owners[s.owner]; s.usage == nil {
			s.usage = new(owner)
			ctl.owners[s.owner] = s.usage
		}
		add(&s.usage.Amount, more, 0, 0)
		ctl.settle(s.owner, s.usage)
	}
}

// countClaims counts a claim that was made or has ended, and bytes of its value.
func (ctl *control) countClaims(c *claim, more, bytes int) {
	if ctl != nil { // a separate function, so that it costs nothing without rules
		ctl.countClaim(c, more, bytes)
	}
}

func (ctl *control) countClaim(c *claim, more, bytes int) {
	if c.session.owner != "" {
		add(&c.session.usage.Amount, 0, more, bytes)
		ctl.settle(c.session.owner, c.session.usage)
	}
	for _, q := range ctl.rules.Prefixes(c.resource.name) {
		add(ctl.prefixes[q.Prefix], 0, more, bytes)
	}
}

// countLinger counts a place that begins or ceases to linger, as a claim.
func (ctl *control) countLinger(l *linger, more int) {
	if ctl == nil {
		return
	}
	if name := l.of.owner; name != "" {
		o := ctl.owners[name]
		if o == nil {
			o = new(owner)
			ctl.owners[name] = o
		}
		add(&o.Amount, 0, more, 0)
		ctl.settle(name, o)
	}
	for _, q := range ctl.rules.Prefixes(l.name) {
		add(ctl.prefixes[q.Prefix], 0, more, 0)
	}
}

// recount counts everything again, if the rules are enforced.
func (st *state) recount(rules *access.State) {
	if st.control = newControl(rules); st.control == nil {
		return
	}
	for s := range st.all() {
		st.control.countSessions(s, 1)
		for _, c := range s.sortedClaims(nil) {
			st.control.countClaim(c, 1, len(c.value))
		}
	}
	for l := range st.lingers.from(&linger{}) {
		st.control.countLinger(l, 1)
	}
}

// checkControl compares the counts with a recount, which it keeps.
func (st *state) checkControl(rules *access.State) error {
	counted := st.control
	st.recount(rules)
	same := func(a, b map[string]*access.Amount) bool {
		return maps.EqualFunc(a, b, func(a, b *access.Amount) bool { return *a == *b })
	}
	owners := func(ctl *control) map[string]*access.Amount {
		amounts := make(map[string]*access.Amount)
		for _, principal := range slices.Sorted(maps.Keys(ctl.owners)) {
			amounts[principal] = &ctl.owners[principal].Amount
		}
		return amounts
	}
	switch again := st.control; {
	case (counted == nil) != (again == nil):
		return fmt.Errorf("with the rules %v, usage is counted: %v", rules.Mode(), counted != nil)
	case counted != nil && counted.rules != rules:
		return errors.New("other rules are enforced than are in force")
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
func (st *state) Usage(principal string) access.Amount {
	if st.control != nil {
		if o := st.control.owners[principal]; o != nil {
			return o.Amount
		}
	}
	return access.Amount{}
}

// exceeds reports whether a principal, or everybody under a prefix of the name, would exceed a
// quota. If so, it counts that and fills in which quota.
func (ctl *control) exceeds(has *owner, name string, more access.Amount, d *Deeds, refusal *Result) bool {
	over := has.most.More(has.principal, has.Amount, more)
	if name != "" {
		more.Sessions = 0
		for _, q := range ctl.rules.Prefixes(name) {
			if over != nil {
				break
			}
			if over = q.Most.More("", *ctl.prefixes[q.Prefix], more); over != nil {
				over.Who = access.PrefixQuota(q.Prefix)
			}
		}
	}
	if over == nil {
		return false
	}
	d.overQuota(over.Kind)
	*refusal = Result{Code: Quota, Message: over.Error()}
	return true
}
