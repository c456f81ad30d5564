package access

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// format is the version of the encoding of states and changes.
const format = 1

// Append appends the encoded state. Equal states encode to equal bytes.
func (s *State) Append(b []byte) []byte {
	b = append(b, format, byte(s.mode))
	b = wire.AppendUint(b, s.revision)
	b = appendTexts(b, s.names)
	b = appendList(b, s.roles, appendRole)
	b = appendList(b, s.bindings, appendBinding)
	b = appendList(b, s.tokens, appendToken)
	return appendList(b, s.quotas, appendQuota)
}

// ReadState reads what Append wrote. It fails if that is not a valid state.
func ReadState(r *wire.Reader) *State {
	readFormat(r)
	s := New(Unset)
	s.mode, s.revision = Mode(r.Byte()), r.Uint()
	s.names = readTexts(r)
	var edits []Edit
	readList(r, func() { edits = append(edits, Edit{Kind: PutRole, Role: readRole(r)}) })
	readList(r, func() { edits = append(edits, Edit{Kind: PutBinding, Binding: readBinding(r)}) })
	readList(r, func() { edits = append(edits, Edit{Kind: PutToken, Token: readToken(r)}) })
	readList(r, func() { edits = append(edits, Edit{Kind: PutQuota, Quota: readQuota(r)}) })
	if r.Err() != nil {
		return s
	}
	next, err := s.restored(edits)
	if err != nil {
		r.Fail(fmt.Errorf("access: %w", err))
		return s
	}
	return next
}

// restored returns the state with the values of the edits, if it is valid and no two edits put
// the same key.
func (s *State) restored(edits []Edit) (*State, error) {
	if s.mode >= modes {
		return nil, invalid("mode", s.mode.String(), "is unknown")
	}
	if s.revision == 0 {
		return nil, invalid("revision", "0", "must be at least 1")
	}
	if err := validateNames(s.names); err != nil {
		return nil, err
	}
	for i := range edits {
		if err := edits[i].validate(); err != nil {
			return nil, err
		}
	}
	next := s.edited(edits)
	if n := len(next.roles) + len(next.bindings) + len(next.tokens) + len(next.quotas); n != len(edits) {
		return nil, fmt.Errorf("%d of %d values are stored twice", len(edits)-n, len(edits))
	}
	if err := next.check(); err != nil {
		return nil, err
	}
	return next, next.compile(nil)
}

// Append appends the encoded change.
func (c *Change) Append(b []byte) []byte {
	b = append(b, format)
	b = wire.AppendUint(b, c.Expected)
	b = wire.AppendBool(b, c.Force)
	b = wire.AppendBool(b, c.EndSessions)
	return appendList(b, c.Edits, appendEdit)
}

// ReadChange reads a change that Append wrote; it need not be valid.
func ReadChange(r *wire.Reader) Change {
	readFormat(r)
	c := Change{Expected: r.Uint(), Force: r.Bool(), EndSessions: r.Bool()}
	readList(r, func() { c.Edits = append(c.Edits, readEdit(r)) })
	return c
}

func readFormat(r *wire.Reader) {
	if found := r.Byte(); r.Err() == nil && found != format {
		r.Fail(fmt.Errorf("access: format %d: this release reads format %d", found, format))
	}
}

func appendEdit(b []byte, e Edit) []byte {
	b = append(b, byte(e.Kind))
	switch e.Kind {
	case PutRole:
		return appendRole(b, e.Role)
	case DropRole:
		return wire.AppendBytes(b, e.Role.Name)
	case PutBinding:
		return appendBinding(b, e.Binding)
	case DropBinding:
		return wire.AppendBytes(b, e.Binding.Who)
	case PutToken:
		return appendToken(b, e.Token)
	case DropToken:
		return wire.AppendBytes(b, e.Token.ID)
	case PutQuota, DropQuota:
		return appendQuota(b, e.Quota)
	case SetMode:
		return append(b, byte(e.Mode))
	case SetNames:
		return appendTexts(b, e.Names)
	}
	return b
}

func readEdit(r *wire.Reader) Edit {
	e := Edit{Kind: Kind(r.Byte())}
	switch e.Kind {
	case PutRole:
		e.Role = readRole(r)
	case DropRole:
		e.Role.Name = r.String()
	case PutBinding:
		e.Binding = readBinding(r)
	case DropBinding:
		e.Binding.Who = r.String()
	case PutToken:
		e.Token = readToken(r)
	case DropToken:
		e.Token.ID = r.String()
	case PutQuota, DropQuota:
		e.Quota = readQuota(r)
	case SetMode:
		e.Mode = Mode(r.Byte())
	case SetNames:
		e.Names = readTexts(r)
	default:
		r.Fail(fmt.Errorf("access: edit: kind %d: unknown", e.Kind))
	}
	return e
}

func appendRole(b []byte, role Role) []byte {
	return appendList(wire.AppendBytes(b, role.Name), role.Rules, func(b []byte, rule Rule) []byte {
		b = wire.AppendBool(b, rule.Deny)
		b = wire.AppendUint(b, uint64(rule.Verbs))
		b = append(b, byte(rule.Class))
		b = wire.AppendBool(b, rule.Exact)
		return wire.AppendBytes(b, rule.Name)
	})
}

func readRole(r *wire.Reader) Role {
	role := Role{Name: r.String()}
	readList(r, func() {
		role.Rules = append(role.Rules, Rule{Deny: r.Bool(), Verbs: Verbs(r.Uint32()), Class: Class(r.Byte()), Exact: r.Bool(), Name: r.String()})
	})
	return role
}

func appendBinding(b []byte, binding Binding) []byte {
	return appendTexts(wire.AppendBytes(b, binding.Who), binding.Roles)
}

func readBinding(r *wire.Reader) Binding { return Binding{Who: r.String(), Roles: readTexts(r)} }

func appendToken(b []byte, t Token) []byte {
	b = append(wire.AppendBytes(b, t.ID), t.Hash[:]...)
	b = wire.AppendBytes(b, t.Name)
	b = wire.AppendBytes(b, t.Creator)
	b = wire.AppendInt(b, t.Made)
	b = wire.AppendInt(b, t.Expires)
	b = wire.AppendBytes(b, t.Note)
	return wire.AppendUint(wire.AppendBytes(b, t.Peer), t.UID)
}

func readToken(r *wire.Reader) Token {
	t := Token{ID: r.String()}
	r.Fixed(t.Hash[:])
	t.Name, t.Creator, t.Made, t.Expires, t.Note = r.String(), r.String(), r.Int(), r.Int(), r.String()
	t.Peer, t.UID = r.String(), r.Uint()
	return t
}

func appendQuota(b []byte, q Quota) []byte {
	b = wire.AppendBytes(b, q.Who)
	b = wire.AppendBytes(b, q.Prefix)
	b = wire.AppendUint(b, q.Most.Sessions)
	b = wire.AppendUint(b, q.Most.Claims)
	b = wire.AppendUint(b, q.Most.Bytes)
	return wire.AppendUint(b, q.Most.Requests)
}

func readQuota(r *wire.Reader) Quota {
	return Quota{Who: r.String(), Prefix: r.String(), Most: Amount{r.Uint(), r.Uint(), r.Uint(), r.Uint()}}
}

func appendTexts(b []byte, texts []string) []byte {
	return appendList(b, texts, wire.AppendBytes[string])
}

func readTexts(r *wire.Reader) (texts []string) {
	readList(r, func() { texts = append(texts, r.String()) })
	return texts
}

func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = wire.AppendUint(b, uint64(len(list)))
	for _, v := range list {
		b = one(b, v)
	}
	return b
}

// readList reads a count, and calls read that many times while there is no error.
func readList(r *wire.Reader, read func()) {
	for n := r.Count(); n > 0 && r.Err() == nil; n-- {
		read()
	}
}
