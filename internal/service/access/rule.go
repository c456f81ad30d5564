package access

import (
	"slices"
	"strconv"
	"strings"
)

// Bounds of names.
const (
	maxRoleName = 64  // bytes
	maxName     = 512 // bytes of the name of a lock or an election
)

// Rule allows or denies verbs on the names of a class that start with Name or, if Exact, on
// that one name. A rule with verbs on the cluster has no name, and its class does not
// matter.
type Rule struct {
	Deny  bool
	Verbs Verbs
	Class Class
	Exact bool
	Name  string
}

// String returns the rule as ParseRule reads it, such as
// `allow read,hold on lock prefix "reports/"`.
func (r Rule) String() string {
	text := "allow "
	if r.Deny {
		text = "deny "
	}
	text += r.Verbs.String()
	if r.Verbs&onNames == 0 {
		return text
	}
	return text + " on " + r.scope(r.Name)
}

// scope describes the names to which a rule applies.
func (r Rule) scope(name string) string {
	text := ""
	if r.Class != Any {
		text = r.Class.String() + " "
	}
	if r.Exact {
		return text + "name " + strconv.Quote(name)
	}
	return text + "prefix " + strconv.Quote(name)
}

// ParseRule reads a rule: `allow|deny VERBS [on [CLASS] prefix|name NAME]`. NAME is the
// rest of the line, with or without double quotes.
func ParseRule(text string) (r Rule, err error) {
	wrong := func(expected string) (Rule, error) { return Rule{}, invalid("rule", text, expected) }
	effect, rest, _ := strings.Cut(text, " ")
	if effect != "allow" && effect != "deny" {
		return wrong("must begin with allow or deny")
	}
	list, where, scoped := strings.Cut(rest, " on ")
	r = Rule{Deny: effect == "deny", Class: Any}
	if r.Verbs, err = ParseVerbs(list); err != nil {
		return Rule{}, err
	}
	if !scoped {
		return r, r.validate()
	}
	word, name, _ := strings.Cut(where, " ")
	if word != "prefix" && word != "name" {
		if r.Class, err = ParseClass(word); err != nil {
			return wrong("after on must come lock, election, any, prefix or name")
		}
		word, name, _ = strings.Cut(name, " ")
	}
	if word != "prefix" && word != "name" {
		return wrong("must say prefix or name")
	}
	if strings.HasPrefix(name, `"`) {
		if name, err = strconv.Unquote(name); err != nil {
			return wrong("the name must be quoted as a whole")
		}
	}
	r.Exact, r.Name = word == "name", name
	return r, r.validate()
}

// Warning says why a rule may match more than intended, or "". The prefix "reports" also
// matches "reports-secret".
func (r Rule) Warning() string {
	if r.Exact || r.Name == "" || strings.HasSuffix(r.Name, "/") || strings.HasSuffix(r.Name, "-") || strings.HasSuffix(r.Name, ".") || strings.HasSuffix(r.Name, ":") {
		return ""
	}
	return "prefix: " + quoted(r.Name) + ": also selects names such as " + quoted(r.Name+"-x") + "; end it with one of / - . : to select what is below it"
}

func (r Rule) validate() error {
	switch {
	case r.Verbs == 0 || r.Verbs&^everything != 0:
		return invalid("rule", r.String(), "must name known verbs")
	case r.Class > Any:
		return invalid("class", r.Class.String(), "must be lock, election or any")
	case r.Verbs&^onNames != 0 && (r.Exact || r.Name != "" || r.Class != Any):
		return invalid("rule", r.String(), "the verbs "+(r.Verbs&^onNames).String()+" are about the cluster; give them a rule without a name")
	case r.Exact || r.Name != "":
		return validateText("name", r.Name, maxName)
	}
	return nil
}

// matches reports whether a rule applies to a verb on a name.
func (r Rule) matches(verb Verb, class Class, name string) bool {
	switch {
	case !verb.in(r.Verbs):
		return false
	case !verb.OnNames():
		return true
	case r.Class != Any && r.Class != class:
		return false
	case r.Exact:
		return r.Name == name
	}
	return strings.HasPrefix(name, r.Name)
}

// Role is a named set of rules. Their order does not matter.
type Role struct {
	Name  string
	Rules []Rule
}

func (r Role) validate() error {
	if err := validateRoleName(r.Name); err != nil {
		return err
	}
	if _, is := fixed(r.Name); is {
		return invalid("role", r.Name, "is fixed and cannot be changed; choose another name")
	}
	for _, rule := range r.Rules {
		if err := rule.validate(); err != nil {
			return err
		}
	}
	return nil
}

func validateRoleName(name string) error {
	if strings.ContainsAny(name, ", ") {
		return invalid("role", name, "must have no commas and no spaces")
	}
	return validateText("role", name, maxRoleName)
}

func (r Role) equal(other Role) bool {
	return r.Name == other.Name && slices.Equal(r.Rules, other.Rules)
}

// fixedRoles always exist and never change.
var fixedRoles = []Role{
	{"admin", []Rule{{Verbs: everything, Class: Any}}},
	{"metrics", []Rule{{Verbs: Of(Status), Class: Any}}},
	{"operator", []Rule{{Verbs: everything &^ Of(Access), Class: Any}}},
	{"viewer", []Rule{{Verbs: Of(Read, Status, Sessions), Class: Any}}},
}

// Fixed returns the roles that always exist, by name.
func Fixed() []Role { return slices.Clone(fixedRoles) }

func fixed(name string) (Role, bool) {
	i := slices.IndexFunc(fixedRoles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return fixedRoles[i], true
}

// Binding gives roles to a principal, to all that start with the text before a trailing '*', or
// to everyone. A principal has the roles of all bindings that match it.
type Binding struct {
	Who   string
	Roles []string // sorted
}

func (b Binding) validate() error {
	if err := validatePattern(b.Who); err != nil {
		return err
	}
	if len(b.Roles) == 0 {
		return invalid("binding", b.Who, "must name a role")
	}
	for i, name := range b.Roles {
		if err := validateRoleName(name); err != nil {
			return err
		}
		if i > 0 && b.Roles[i-1] >= name {
			return invalid("role", name, "roles must be sorted, and named once")
		}
	}
	return nil
}
