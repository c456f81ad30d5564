package access

import (
	"slices"
	"strings"
)

// compiled is the result of compiling the rules, bindings and quotas of a state.
type compiled struct {
	// sets are the rights of sets of roles, by their names, joined by commas.
	sets map[string]*Rights
	// own has the rights of principals that a binding names. patterns has the rights of all
	// others, at the longest matching pattern.
	own      map[string]*Rights
	patterns *tree[group]
	// most has the quotas of principals that a quota names, and owners those of all others, at the
	// longest matching pattern.
	most     map[string]Amount
	owners   *tree[Amount]
	prefixes *tree[[]Quota] // all that a name is in
	paced    bool           // a quota bounds requests
}

// group is the principals that match a pattern, but no longer one.
type group struct {
	roles  []string
	rights *Rights
}

// compile computes s.compiled. It reuses the rights of sets of roles that have not changed since
// the state before, which may be nil.
func (s *State) compile(before *State) error {
	c := &compiler{State: s, before: before}
	s.compiled = compiled{sets: map[string]*Rights{}, own: map[string]*Rights{}, patterns: &tree[group]{}, most: map[string]Amount{}, owners: &tree[Amount]{}, prefixes: &tree[[]Quota]{}}
	var named []Binding
	for _, b := range s.bindings {
		switch stem, pattern := strings.CutSuffix(b.Who, "*"); {
		case b.Who == Everyone:
			s.compiled.patterns.value.roles = b.Roles
		case pattern:
			s.compiled.patterns.at(stem).value.roles = b.Roles
		default:
			named = append(named, b)
		}
	}
	root := &s.compiled.patterns.value
	root.rights = c.rightsOf(root.roles)
	s.compiled.patterns.inherit(func(parent, child *group) {
		child.roles = union(parent.roles, child.roles)
		child.rights = c.rightsOf(child.roles)
	})
	for _, b := range named {
		n, _ := s.compiled.patterns.find(b.Who)
		s.compiled.own[b.Who] = c.rightsOf(union(n.value.roles, b.Roles))
	}
	s.compileQuotas()
	if c.rules > MaxCompiled {
		return &LimitError{"rules of all sets of roles that principals have", c.rules, MaxCompiled}
	}
	return nil
}

type compiler struct {
	*State
	before *State
	rules  int // in all sets
}

// rightsOf returns the rights of a set of roles. Once there are too many rules, it returns no
// rights, since the state will be refused.
func (c *compiler) rightsOf(names []string) *Rights {
	if len(names) == 0 {
		return noRights
	}
	key := strings.Join(names, ",")
	if rights := c.compiled.sets[key]; rights != nil {
		return rights
	}
	var roles []Role
	for _, name := range names {
		role, _ := c.Role(name)
		roles = append(roles, role)
		c.rules += len(role.Rules)
	}
	rights := noRights
	switch {
	case c.rules > MaxCompiled:
	case c.before != nil && c.before.compiled.sets[key] != nil && c.unchanged(roles):
		rights = c.before.compiled.sets[key]
	default:
		rights = compile(roles)
	}
	c.compiled.sets[key] = rights
	return rights
}

// unchanged reports whether roles are the same as before.
func (c *compiler) unchanged(roles []Role) bool {
	return !slices.ContainsFunc(roles, func(role Role) bool {
		before, found := c.before.Role(role.Name)
		return !found || !before.equal(role)
	})
}

// compileQuotas gives every pattern and prefix the quotas of those that enclose it.
func (s *State) compileQuotas() {
	for _, q := range s.quotas {
		s.compiled.paced = s.compiled.paced || q.Most.Requests != 0
		switch stem, pattern := strings.CutSuffix(q.Who, "*"); {
		case q.Who == "":
			s.compiled.prefixes.at(q.Prefix).value = []Quota{q}
		case q.Who == Everyone:
			s.compiled.owners.value = q.Most
		case pattern:
			s.compiled.owners.at(stem).value = q.Most
		default:
			s.compiled.most[q.Who] = q.Most.or(DefaultAmount)
		}
	}
	s.compiled.owners.inherit(func(parent, child *Amount) {
		if *child == (Amount{}) {
			*child = *parent
		}
	})
	s.compiled.prefixes.inherit(func(parent, child *[]Quota) { *child = slices.Concat(*parent, *child) })
}

// union returns the union of two sorted lists, sorted.
func union(a, b []string) []string {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Administrators returns who may change the rules, apart from callers through a socket:
// principals that a binding names, and patterns that match others.
func (s *State) Administrators() (who []string) {
	for _, b := range s.orNone().bindings {
		stem, _ := strings.CutSuffix(b.Who, "*")
		if b.Who == Everyone {
			stem = ""
		}
		rights := s.compiled.own[b.Who]
		if rights == nil {
			n, _ := s.compiled.patterns.find(stem)
			rights = n.value.rights
		}
		if rights.Allows(Access, Lock, "") {
			who = append(who, b.Who)
		}
	}
	return who
}
