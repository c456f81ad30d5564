package access

import (
	"fmt"
	"slices"
	"strings"
)

// Kind says what an edit is about. The numbers are part of the format.
type Kind uint8

// The kinds. A put has the whole value; a drop needs only the key.
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

// Edit changes one part of a state.
type Edit struct {
	Kind    Kind
	Role    Role
	Binding Binding
	Token   Token
	Quota   Quota
	Mode    Mode
	Names   []string
}

// MaxEdits bounds the edits of a change, and MaxChange its size in bytes.
const (
	MaxEdits  = 4096
	MaxChange = 1 << 20
)

// Change is a list of edits that are made together, or not at all.
type Change struct {
	// Expected is the revision for which the change was made; 0 means any.
	Expected uint64
	// Force allows a change that leaves nobody with the verb access except through the socket.
	Force bool
	// EndSessions ends the sessions of anonymous callers, if the edits turn rules on. Without
	// it such a change is refused while there are such sessions: see AnonymousError.
	EndSessions bool
	Edits       []Edit
}

// Apply returns the state after a change. If the change would make no difference, it returns
// s, whatever revision was expected, so a change that is sent twice is made once. Errors are
// an *InvalidError, *ConflictError, *LimitError or *LockoutError.
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

// Size returns the approximate size of a change in bytes.
func (c *Change) Size() int {
	n := 16
	for i := range c.Edits {
		e := &c.Edits[i]
		n += 64 + len(e.Role.Name) + len(e.Binding.Who) + len(e.Token.Name) + len(e.Token.Peer) + len(e.Token.Note) + len(e.Quota.Who) + len(e.Quota.Prefix)
		for _, rule := range e.Role.Rules {
			n += 8 + len(rule.Name)
		}
		for _, role := range e.Binding.Roles {
			n += 1 + len(role)
		}
	}
	return n
}

// Validate returns what is wrong with a change regardless of the state it is applied to.
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
		return e.Quota.validateKey()
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

// edited returns a copy with the edits made. It is not compiled.
func (s *State) edited(edits []Edit) *State {
	next := *s
	// The new values by key, nil for those that are dropped. The last edit of a key counts.
	roles, bindings, tokens, quotas := map[string]*Role{}, map[string]*Binding{}, map[string]*Token{}, map[string]*Quota{}
	for i := range edits {
		switch e := &edits[i]; e.Kind {
		case PutRole:
			roles[e.Role.key()] = &e.Role
		case DropRole:
			roles[e.Role.key()] = nil
		case PutBinding:
			bindings[e.Binding.key()] = &e.Binding
		case DropBinding:
			bindings[e.Binding.key()] = nil
		case PutToken:
			tokens[e.Token.key()] = &e.Token
		case DropToken:
			tokens[e.Token.key()] = nil
		case PutQuota:
			quotas[e.Quota.key()] = &e.Quota
		case DropQuota:
			quotas[e.Quota.key()] = nil
		case SetMode:
			next.mode = e.Mode
		case SetNames:
			next.names = e.Names
		}
	}
	next.roles = merged(s.roles, Role.key, roles)
	next.bindings = merged(s.bindings, Binding.key, bindings)
	next.tokens = merged(s.tokens, Token.key, tokens)
	next.quotas = merged(s.quotas, Quota.key, quotas)
	return &next
}

// same reports whether two states have the same content.
func (s *State) same(other *State) bool {
	return s.mode == other.mode && slices.Equal(s.names, other.names) &&
		slices.EqualFunc(s.roles, other.roles, Role.equal) &&
		slices.EqualFunc(s.bindings, other.bindings, func(a, b Binding) bool { return a.Who == b.Who && slices.Equal(a.Roles, b.Roles) }) &&
		slices.Equal(s.tokens, other.tokens) && slices.Equal(s.quotas, other.quotas)
}

// locksOut reports whether nobody could change access in the next state, although somebody can
// now, or there are no rules yet.
func (s *State) locksOut(next *State) bool {
	return next.mode == Closed && len(next.Administrators()) == 0 && (s.mode != Closed || len(s.Administrators()) > 0)
}

// check returns an error if a state is too large or names a role that does not exist.
func (s *State) check() error {
	s.size = len(s.Append(nil))
	rules := 0
	for _, r := range s.roles {
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
	for _, b := range s.bindings {
		for _, name := range b.Roles {
			if _, found := s.Role(name); !found {
				return invalid("role", name, "no such role, and "+head(b.Who)+" has it; make the role first, or drop the binding")
			}
		}
	}
	return nil
}

// String describes an edit in a few words, for the audit trail. It contains no secret.
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
		if e.Token.Joins() {
			return "token " + e.Token.ID + " to join at " + e.Token.Peer
		}
		return "token " + e.Token.ID + " of " + e.Token.Principal()
	case DropToken:
		return "token " + e.Token.ID + ": removed"
	case PutQuota:
		most := e.Quota.Most
		return fmt.Sprintf("quota of %s: %d sessions, %d claims, %d bytes, %d requests", e.Quota.of(), most.Sessions, most.Claims, most.Bytes, most.Requests)
	case DropQuota:
		return fmt.Sprintf("quota of %s: removed", e.Quota.of())
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
