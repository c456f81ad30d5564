package access

import (
	"fmt"
	"slices"
	"strings"
)

// Rights are what the roles of a principal allow: a tree of names for each class. They
// never change.
type Rights struct {
	roles []string
	trees [classes]*tree[nodeVerbs]
}

// nodeVerbs has the verbs that are allowed on names that start with the string of a node, and on the
// name that equals it.
type nodeVerbs struct {
	below, exact Verbs
	// The verbs in rules for exactly this string.
	allow, deny, allowExact, denyExact Verbs
}

// noRights are the rights of a principal without roles.
var noRights = compile(nil)

// adminRights are the rights of principals that come through the socket of a server.
var adminRights = compile([]Role{fixedRoles[0]})

// compile computes the rights of the given roles.
func compile(roles []Role) *Rights {
	r := &Rights{}
	for class := range r.trees {
		r.trees[class] = &tree[nodeVerbs]{}
	}
	for _, role := range roles {
		r.roles = append(r.roles, role.Name)
		for _, rule := range role.Rules {
			r.add(rule)
		}
	}
	for _, root := range r.trees {
		root.value.settle(0)
		root.inherit(func(parent, child *nodeVerbs) { child.settle(parent.below) })
	}
	return r
}

func (r *Rights) add(rule Rule) {
	for class, root := range r.trees {
		if rule.Class != Any && rule.Class != Class(class) {
			continue
		}
		p := &root.at(rule.Name).value
		switch {
		case rule.Exact && rule.Deny:
			p.denyExact |= rule.Verbs
		case rule.Exact:
			p.allowExact |= rule.Verbs
		case rule.Deny:
			p.deny |= rule.Verbs
		default:
			p.allow |= rule.Verbs
		}
	}
}

// settle computes what is allowed here from what is allowed for shorter prefixes.
func (p *nodeVerbs) settle(above Verbs) {
	p.below = (above | p.allow) &^ p.deny
	p.exact = (p.below | p.allowExact) &^ p.denyExact
}

// Allows reports whether a verb is allowed on a name. Verbs on the cluster have no name.
func (r *Rights) Allows(verb Verb, class Class, name string) bool {
	if !verb.OnNames() {
		return verb.in(r.trees[Lock].value.below)
	}
	if class >= classes {
		return false
	}
	n, whole := r.trees[class].find(name)
	if whole {
		return verb.in(n.value.exact)
	}
	return verb.in(n.value.below)
}

// somewhere reports whether a verb is allowed on any name that starts with the string of a node.
func somewhere(n *tree[nodeVerbs], verb Verb) bool {
	return verb.in(n.value.below) || verb.in(n.value.exact) ||
		slices.ContainsFunc(n.children, func(c *tree[nodeVerbs]) bool { return somewhere(c, verb) })
}

// Somewhere reports whether a verb is allowed on any name that starts with a prefix.
func (r *Rights) Somewhere(verb Verb, class Class, prefix string) bool {
	n := r.trees[class]
	for prefix != "" {
		i := strings.IndexByte(n.heads, prefix[0])
		if i < 0 {
			return verb.in(n.value.below)
		}
		c := n.children[i]
		same := common(prefix, c.label)
		switch {
		case same == len(prefix) && same < len(c.label): // the names are c's, and others below n
			return verb.in(n.value.below) || somewhere(c, verb)
		case same < len(c.label):
			return verb.in(n.value.below)
		}
		n, prefix = c, prefix[same:]
	}
	return somewhere(n, verb)
}

// Allows is Decide without the reason.
func (s *State) Allows(principal string, verb Verb, class Class, name string) bool {
	return s.Mode() != Closed || s.Rights(principal).Allows(verb, class, name)
}

// Decide reports whether a principal may do something, and why not. Verbs on the cluster
// have no class and no name. Without rules everything is allowed; a server that other
// machines can reach may be stricter.
func (s *State) Decide(principal string, verb Verb, class Class, name string) (allowed bool, why Reason) {
	if s.Allows(principal, verb, class, name) {
		return true, Reason{}
	}
	return false, s.Explain(principal, verb, class, name)
}

// Reason says why a principal may or may not do something.
type Reason struct {
	Allowed   bool
	Principal string // empty for a caller that has not proven who it is
	Verb      Verb
	Class     Class
	Name      string
	// Open means that there are no rules.
	Open bool
	// Role and Rule decide, if Decided. Otherwise no role has a matching rule.
	Decided bool
	Role    string
	Rule    Rule
	// Roles are the roles of the principal, sorted.
	Roles []string
}

// Explain says why a principal may or may not do something, and by which rule.
func (s *State) Explain(principal string, verb Verb, class Class, name string) Reason {
	why := Reason{Principal: principal, Verb: verb, Class: class, Name: name}
	if s.Mode() != Closed {
		why.Allowed, why.Open = true, true
		return why
	}
	why.Roles = s.Rights(principal).roles
	for _, roleName := range why.Roles {
		role, _ := s.Role(roleName)
		for _, rule := range role.Rules {
			if rule.matches(verb, class, name) && (!why.Decided || rule.beats(why.Rule)) {
				why.Decided, why.Role, why.Rule = true, roleName, rule
			}
		}
	}
	why.Allowed = why.Decided && !why.Rule.Deny
	return why
}

// beats reports whether a rule takes precedence over another one that matches the same name.
func (r Rule) beats(other Rule) bool {
	switch {
	case r.Exact != other.Exact:
		return r.Exact
	case len(r.Name) != len(other.Name):
		return len(r.Name) > len(other.Name)
	}
	return r.Deny && !other.Deny
}

// maxRolesShown is the number of roles that a message names.
const maxRolesShown = 3

// String returns the reason as one line, such as
// `cert:bob may not hold "pay/a": role batch denies hold on prefix "pay/"`.
func (w Reason) String() string {
	who, what := head(w.Principal), acts[w.Verb]
	if who == "" {
		who = "anonymous"
	}
	if w.Verb.OnNames() {
		what += " " + quoted(w.Name)
	}
	may := "may"
	if !w.Allowed {
		may = "may not"
	}
	return fmt.Sprintf("%s %s %s: %s", who, may, what, w.because())
}

func (w Reason) because() string {
	switch {
	case w.Open:
		return "there are no rules"
	case w.Decided:
		text := "role " + w.Role + " allows " + w.Verb.String()
		if w.Rule.Deny {
			text = "role " + w.Role + " denies " + w.Verb.String()
		}
		if w.Verb.OnNames() {
			text += " on " + w.Rule.scope(head(w.Rule.Name))
		}
		return text
	case w.Principal == "":
		return "prove who you are by a client certificate or a token"
	}
	check := "see conclave access check " + w.Verb.String()
	if w.Verb.OnNames() {
		check += " " + head(w.Name)
	}
	if len(w.Roles) == 0 {
		return "it has no role; " + check
	}
	shown := strings.Join(w.Roles[:min(len(w.Roles), maxRolesShown)], ", ")
	if len(w.Roles) > maxRolesShown {
		shown += ", ..."
	}
	there := ""
	if w.Verb.OnNames() {
		there = " there"
	}
	return fmt.Sprintf("none of its roles (%s) allows %s%s; %s", shown, w.Verb, there, check)
}

// Rights returns the rights of a principal while there are rules. They are valid for this
// state only.
func (s *State) Rights(principal string) *Rights {
	switch {
	case principal == "" || s == nil || Source(principal) == Joining:
		return noRights
	case Source(principal) == Local:
		return adminRights
	}
	if rights := s.compiled.own[principal]; rights != nil {
		return rights
	}
	n, _ := s.compiled.patterns.find(principal)
	return n.value.rights
}

// Roles returns the roles of a principal, sorted.
func (s *State) Roles(principal string) []string { return slices.Clone(s.Rights(principal).roles) }
