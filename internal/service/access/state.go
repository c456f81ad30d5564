package access

import (
	"slices"
	"strings"
)

// Bounds of a state.
const (
	MaxRoles    = 1024
	MaxRules    = 16384
	MaxBindings = 65536
	MaxTokens   = 65536
	MaxQuotas   = 1024
	MaxBytes    = 8 << 20 // of the encoding
	// MaxCompiled bounds the rules in all sets of roles that bindings form, so that no change
	// takes long. A rule counts once in each set.
	MaxCompiled = 1 << 18
)

// Mode says whether there are rules.
type Mode uint8

// The modes. The numbers are part of the format.
const (
	// Unset: there are no rules yet. Servers on loopback allow everything, others nothing.
	Unset Mode = iota
	// Open: there are no rules, and everything is allowed, as before there could be any.
	Open
	// Closed: what no rule allows is denied.
	Closed

	modes
)

var modeNames = [modes]string{"unset", "open", "closed"}

func (m Mode) String() string {
	if m < modes {
		return modeNames[m]
	}
	return "unknown"
}

// certNames are the kinds of names in a client certificate that can be a principal's name.
var certNames = []string{"uri", "cn", "dns"}

// defaultNames are the kinds that are used by default.
var defaultNames = []string{"uri", "cn"}

// State has the access rules of a cluster. It never changes. A nil *State has no rules.
type State struct {
	mode     Mode
	revision uint64
	names    []string
	// Each list is sorted by its keys.
	roles    []Role
	bindings []Binding
	tokens   []Token
	quotas   []Quota
	size     int // of the encoding

	compiled compiled
}

// noState has the content of a nil *State.
var noState = &State{names: defaultNames}

func (s *State) orNone() *State {
	if s == nil {
		return noState
	}
	return s
}

// New returns the state before the first change. Its revision is 1.
func New(mode Mode) *State {
	s := &State{mode: mode, revision: 1, names: defaultNames}
	s.size = len(s.Append(nil))
	_ = s.compile(nil) // nothing in it can be too large
	return s
}

// Mode says whether there are rules.
func (s *State) Mode() Mode {
	return s.orNone().mode
}

// Revision counts the changes. It is 0 for a nil state.
func (s *State) Revision() uint64 {
	return s.orNone().revision
}

// Size is the number of bytes that Append appends.
func (s *State) Size() int {
	return s.orNone().size
}

// Rest names something that has to be removed before a cluster can go to a level without rules,
// such as a role, or returns "".
func (s *State) Rest() string {
	switch s = s.orNone(); {
	case s.mode == Closed:
		return "the rules of access"
	case len(s.bindings) > 0:
		return "the roles of " + head(s.bindings[0].Who)
	case len(s.roles) > 0:
		return "the role " + s.roles[0].Name
	case len(s.tokens) > 0:
		return "the token " + s.tokens[0].ID
	case len(s.quotas) > 0:
		return "the quota of " + s.quotas[0].of()
	case !slices.Equal(s.names, defaultNames):
		return "certificate names other than " + strings.Join(defaultNames, ",")
	}
	return ""
}

// Names returns the kinds of names in client certificates that are used, the first choice first.
func (s *State) Names() []string {
	return slices.Clone(s.orNone().names)
}

// Role returns a role by its name, including fixed ones.
func (s *State) Role(name string) (Role, bool) {
	if r, is := fixed(name); is || s == nil {
		return r, is
	}
	return find(s.roles, Role.key, name)
}

// AllRoles returns the roles that are not fixed, by name.
func (s *State) AllRoles() []Role {
	return slices.Clone(s.orNone().roles)
}

// Bindings returns all bindings, sorted by their patterns.
func (s *State) Bindings() []Binding {
	return slices.Clone(s.orNone().bindings)
}

// Tokens returns the records of all tokens, by id.
func (s *State) Tokens() []Token {
	return slices.Clone(s.orNone().tokens)
}

// Token returns the record of a token.
func (s *State) Token(id string) (Token, bool) {
	return find(s.orNone().tokens, Token.key, id)
}

// Quotas returns all quotas, those of prefixes first.
func (s *State) Quotas() []Quota {
	return slices.Clone(s.orNone().quotas)
}

// Most returns the quota of a principal. Without rules there are no bounds.
func (s *State) Most(principal string) Amount {
	if s.Mode() != Closed || principal == "" || Source(principal) == Local {
		return Amount{}
	}
	if most, named := s.compiled.most[principal]; named {
		return most
	}
	n, _ := s.compiled.owners.find(principal)
	return n.value.or(DefaultAmount)
}

// Pace returns how many requests per second a principal may send to each server. 0 means that
// they are not bounded.
func (s *State) Pace(principal string) uint64 {
	if s.Mode() != Closed || !s.compiled.paced {
		return 0
	}
	return s.Most(principal).Requests
}

// Prefixes returns the quotas of all prefixes of a name, the shortest prefix first. The caller
// must not change the slice.
func (s *State) Prefixes(name string) []Quota {
	if s.Mode() != Closed {
		return nil
	}
	n, _ := s.compiled.prefixes.find(name)
	return n.value
}

// SamePrefixes reports whether the same prefixes have quotas in two states.
func (s *State) SamePrefixes(other *State) bool {
	return s.Mode() == other.Mode() && slices.EqualFunc(s.prefixQuotas(), other.prefixQuotas(), func(a, b Quota) bool { return a.Prefix == b.Prefix })
}

func (s *State) prefixQuotas() []Quota {
	return slices.DeleteFunc(s.Quotas(), func(q Quota) bool { return q.Who != "" })
}
