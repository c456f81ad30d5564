package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind says what an edit is about. The numbers are part of the format.
type Kind uint8

// The kinds. An edit that puts has a whole value; one that drops needs only what names it.
const (
	PutRole Kind = 1 + iota
	DropRole
	PutBinding
	DropBinding
	PutToken
	DropToken
	PutQuota
	DropQuota
	SetMode
	SetNames
)

// Edit changes one thing of a state.
type Edit struct {
	Kind    Kind
	Role    Role
	Binding Binding
	Token   Token
	Quota   Quota
	Mode    Mode
	Names   []string
}

// MaxEdits is how many edits a change may have, and MaxChange how many bytes it may take.
const (
	MaxEdits  = 4096
	MaxChange = 1 << 20
)

// Change is edits that are made together, or not at all.
type Change struct {
	// Expected is the revision that they are made for; 0: any.
	Expected uint64
	// Force lets them take the verb access from everybody but the socket.
	Force bool
	Edits []Edit
}

// Apply returns the state after a change. If the change would make no difference, it
// returns s, whatever revision was expected: so a change that is sent twice is made once.
// The errors are an *InvalidError, *ConflictError, *LimitError or *LockoutError.
func (s *State) Apply(c *Change) (*State, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	next := s.edited(c.Edits)
	if next.same(s) {
		return s, nil
	}
	if c.Expected != 0 && c.Expected != s.revision {
		return nil, &ConflictError{c.Expected, s.revision}
	}
	next.revision++
	if err := next.check(); err != nil {
		return nil, err
	}
	if err := next.compile(s); err != nil {
		return nil, err
	}
	if !c.Force && s.locksOut(next) {
		return nil, &LockoutError{}
	}
	return next, nil
}

// Size is about how many bytes a change takes.
func (c *Change) Size() int {
	n := 16
	for i := range c.Edits {
		e := &c.Edits[i]
		n += 64 + len(e.Role.Name) + len(e.Binding.Who) + len(e.Token.Name) + len(e.Token.Note) + len(e.Quota.Who) + len(e.Quota.Prefix)
		for _, rule := range e.Role.Rules {
			n += 8 + len(rule.Name)
		}
		for _, role := range e.Binding.Roles {
			n += 1 + len(role)
		}
	}
	return n
}

// Validate reports what is wrong with a change, whatever state it is made in.
func (c *Change) Validate() error {
	switch {
	case len(c.Edits) == 0:
		return invalid("change", "", "must have an edit")
	case len(c.Edits) > MaxEdits:
		return &LimitError{"edits", len(c.Edits), MaxEdits}
	case c.Size() > MaxChange:
		return &LimitError{"bytes of a change", c.Size(), MaxChange}
	}
	for i := range c.Edits {
		if err := c.Edits[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Edit) validate() error {
	switch e.Kind {
	case PutRole:
		return e.Role.validate()
	case DropRole:
		return validateRoleName(e.Role.Name)
	case PutBinding:
		return e.Binding.validate()
	case DropBinding:
		return validatePattern(e.Binding.Who)
	case PutToken:
		return e.Token.validate()
	case DropToken:
		return validateTokenID(e.Token.ID)
	case PutQuota:
		return e.Quota.validate()
	case DropQuota:
		return e.Quota.key().validate()
	case SetMode:
		if e.Mode != Open && e.Mode != Closed {
			return invalid("mode", e.Mode.String(), "must be open or closed")
		}
		return nil
	case SetNames:
		return validateNames(e.Names)
	}
	return invalid("edit", fmt.Sprint(e.Kind), "is of an unknown kind")
}

func validateNames(names []string) error {
	if len(names) == 0 {
		return invalid("names", "", "must have uri, cn or dns")
	}
	for i, name := range names {
		if !slices.Contains(certNames, name) || slices.Contains(names[:i], name) {
			return invalid("names", name, "must be uri, cn and dns, each at most once")
		}
	}
	return nil
}

// edited returns a copy in which the edits are made. It is not compiled.
func (s *State) edited(edits []Edit) *State {
	next := *s
	// A map is copied before it changes for the first time.
	var roles, bindings, tokens, quotas bool
	for i := range edits {
		switch e := &edits[i]; e.Kind {
		case PutRole:
			own(&next.roles, &roles)[e.Role.Name] = e.Role
		case DropRole:
			delete(own(&next.roles, &roles), e.Role.Name)
		case PutBinding:
			own(&next.bindings, &bindings)[e.Binding.Who] = e.Binding
		case DropBinding:
			delete(own(&next.bindings, &bindings), e.Binding.Who)
		case PutToken:
			own(&next.tokens, &tokens)[e.Token.ID] = e.Token
		case DropToken:
			delete(own(&next.tokens, &tokens), e.Token.ID)
		case PutQuota:
			own(&next.quotas, &quotas)[e.Quota.key()] = e.Quota
		case DropQuota:
			delete(own(&next.quotas, &quotas), e.Quota.key())
		case SetMode:
			next.mode = e.Mode
		case SetNames:
			next.names = e.Names
		}
	}
	return &next
}

// own copies a map once.
func own[K comparable, V any](m *map[K]V, is *bool) map[K]V {
	if !*is {
		*m, *is = maps.Clone(*m), true
	}
	return *m
}

// same reports whether two states say the same.
func (s *State) same(other *State) bool {
	return s.mode == other.mode && slices.Equal(s.names, other.names) &&
		maps.EqualFunc(s.roles, other.roles, Role.equal) &&
		maps.EqualFunc(s.bindings, other.bindings, func(a, b Binding) bool { return slices.Equal(a.Roles, b.Roles) }) &&
		maps.Equal(s.tokens, other.tokens) && maps.Equal(s.quotas, other.quotas)
}

// locksOut reports whether nobody may change access any more in the next state, though
// somebody may now, or there are no rules yet.
func (s *State) locksOut(next *State) bool {
	return next.mode == Closed && !next.administered() && (s.mode != Closed || s.administered())
}

// check measures a state, and reports what is too large or names a role that is not there.
func (s *State) check() error {
	s.size = len(s.Append(nil))
	rules := 0
	for _, r := range s.AllRoles() {
		rules += len(r.Rules)
	}
	for _, bound := range []LimitError{
		{"roles", len(s.roles), MaxRoles},
		{"rules", rules, MaxRules},
		{"bindings", len(s.bindings), MaxBindings},
		{"tokens", len(s.tokens), MaxTokens},
		{"quotas", len(s.quotas), MaxQuotas},
		{"bytes of all rules", s.size, MaxBytes},
	} {
		if bound.Size > bound.Most {
			return &bound
		}
	}
	for _, b := range s.Bindings() {
		for _, name := range b.Roles {
			if _, found := s.Role(name); !found {
				return invalid("role", name, "no such role, and "+head(b.Who)+" has it; make the role first, or drop the binding")
			}
		}
	}
	return nil
}

// String says what an edit does in a few words, for the record. It tells no secret.
func (e *Edit) String() string {
	switch e.Kind {
	case PutRole:
		return fmt.Sprintf("role %s: %d rules", e.Role.Name, len(e.Role.Rules))
	case DropRole:
		return "role " + e.Role.Name + ": removed"
	case PutBinding:
		return e.Binding.Who + ": " + strings.Join(e.Binding.Roles, ",")
	case DropBinding:
		return e.Binding.Who + ": removed"
	case PutToken:
		return "token " + e.Token.ID + " of " + e.Token.Principal()
	case DropToken:
		return "token " + e.Token.ID + ": removed"
	case PutQuota:
		most := e.Quota.Most
		return fmt.Sprintf("quota of %v: %d sessions, %d claims, %d bytes", e.Quota.key(), most.Sessions, most.Claims, most.Bytes)
	case DropQuota:
		return fmt.Sprintf("quota of %v: removed", e.Quota.key())
	case SetMode:
		return "mode: " + e.Mode.String()
	case SetNames:
		return "names: " + strings.Join(e.Names, ",")
	}
	return "unknown"
}

// String lists the edits.
func (c *Change) String() string {
	texts := make([]string, len(c.Edits))
	for i := range c.Edits {
		texts[i] = c.Edits[i].String()
	}
	return strings.Join(texts, "; ")
}
