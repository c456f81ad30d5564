package process

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Role says what a number in the state means to hosts that rewrite or read it.
type Role uint8

// The roles of a field.
const (
	RolePlain Role = iota
	RoleClock      // a logical time; checkers may shift all of them together
	RoleSeq        // a number that this process increments, such as its own requests
	RoleFence      // the number of a grant
	RoleTerm       // a term
)

// FieldView is one field of a state as [View] shows it.
type FieldView struct {
	Name    string
	Role    Role
	Durable bool
	// Value is a bool, int64, uint64, string, []uint64, []string or []byte.
	Value any
	// Pointer is what the machine passed to Fields: a pointer, or the slice itself
	// for fields of fixed length.
	Pointer any
}

// String returns the value as text, for example "[1 2]".
func (v FieldView) String() string { return fmt.Sprint(v.Value) }

type fieldsMode uint8

const (
	modeEncode fieldsMode = iota
	modeDecode
	modeView
	modeMarks
	modeSkip
)

// Fields walks over the state of a machine. A machine calls one method for each piece
// of state, always in the same order and the same number of times, with a name for
// people and a pointer to the piece. The host chooses what the walk does with it:
// encode, decode, show, and so on.
type Fields struct {
	mode        fieldsMode
	durable     bool // the next field survives a crash
	durableOnly bool // the walk skips all others
	inner       bool // inside a list, whose own mark counts
	group       string

	reader            // decode; its buffer also grows when encoding
	at, within string // decode: the field that is read now or could not be, and its group
	view       func(FieldView)
	config     *Config // view
	marks      func(Role, *uint64)
}

// Durable marks the next field as one that survives a crash once it is saved:
//
//	f.Durable().Term("promised", &m.promised)
func (f *Fields) Durable() *Fields {
	f.durable = true
	return f
}

// next consumes the durable mark and returns what the walk does with the field.
func (f *Fields) next(name string) (durable bool, mode fieldsMode) {
	durable = f.durable
	if !f.inner {
		f.durable = false
	}
	if !durable && f.durableOnly || f.err != nil {
		return durable, modeSkip
	}
	if f.mode == modeDecode {
		f.at, f.within = name, f.group
	}
	return durable, f.mode
}

func (f *Fields) show(name string, role Role, durable bool, value, pointer any) {
	f.view(FieldView{Name: f.group + name, Role: role, Durable: durable, Value: value, Pointer: pointer})
}

// Bool visits a truth value.
func (f *Fields) Bool(name string, p *bool) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		b := byte(0)
		if *p {
			b = 1
		}
		f.buf = append(f.buf, b)
	case modeDecode:
		*p = f.limited(1) == 1
	case modeView:
		f.show(name, RolePlain, durable, *p, p)
	}
}

// Int visits a number that may be negative.
func (f *Fields) Int(name string, p *int64) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendVarint(f.buf, *p)
	case modeDecode:
		*p = f.varint()
	case modeView:
		f.show(name, RolePlain, durable, *p, p)
	}
}

// Count visits a small number that is not negative, such as a counter of retries.
func (f *Fields) Count(name string, p *int) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(*p))
	case modeDecode:
		*p = int(f.limited(1 << 62))
	case modeView:
		f.show(name, RolePlain, durable, uint64(*p), p)
	}
}

// Uint visits a number without a role.
func (f *Fields) Uint(name string, p *uint64) { f.number(name, RolePlain, p, p) }

// Clock visits a logical time.
func (f *Fields) Clock(name string, p *uint64) { f.number(name, RoleClock, p, p) }

// Seq visits a number that this process only increments.
func (f *Fields) Seq(name string, p *uint64) { f.number(name, RoleSeq, p, p) }

// Fence visits the number of a grant.
func (f *Fields) Fence(name string, p *Fence) { f.number(name, RoleFence, (*uint64)(p), p) }

// Term visits a term.
func (f *Fields) Term(name string, p *Term) { f.number(name, RoleTerm, (*uint64)(p), p) }

func (f *Fields) number(name string, role Role, p *uint64, pointer any) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, *p)
	case modeDecode:
		*p = f.uvarint()
	case modeView:
		f.show(name, role, durable, roleValue(role, *p), pointer)
	case modeMarks:
		f.marks(role, p)
	}
}

// roleValue is how a number with a role is shown: fences and terms have their own form
// once they leave round 0.
func roleValue(role Role, v uint64) any {
	if role == RoleFence && Fence(v).Round() > 0 {
		return Fence(v).String()
	}
	if role == RoleTerm {
		return Term(v).Round()
	}
	return v
}

// ID visits a process, which may be None.
func (f *Fields) ID(name string, p *ID) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(*p+1))
	case modeDecode:
		*p = f.id()
	case modeView:
		f.show(name, RolePlain, durable, f.config.Text(*p), p)
	}
}

// IDs visits a list of processes whose order matters.
func (f *Fields) IDs(name string, p *[]ID) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(len(*p)))
		for _, id := range *p {
			f.buf = binary.AppendUvarint(f.buf, uint64(id+1))
		}
	case modeDecode:
		*p = (*p)[:0]
		for range f.length() {
			*p = append(*p, f.id())
		}
	case modeView:
		f.show(name, RolePlain, durable, f.config.Texts(*p), p)
	}
}

// Set visits a set of processes, made by NewSet(N).
func (f *Fields) Set(name string, s Set) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		for _, word := range s {
			f.buf = binary.AppendUvarint(f.buf, word)
		}
	case modeDecode:
		for i := range s {
			s[i] = f.limited(1<<min(64, max(0, f.n-64*i)) - 1)
		}
	case modeView:
		members := []ID{}
		for p := range s.All() {
			members = append(members, p)
		}
		f.show(name, RolePlain, durable, f.config.Texts(members), s)
	}
}

// Array visits an array with one number per process. Its length is fixed.
func (f *Fields) Array(name string, s []uint64) { f.array(name, RolePlain, s) }

// Clocks visits an array with one logical time per process.
func (f *Fields) Clocks(name string, s []uint64) { f.array(name, RoleClock, s) }

func (f *Fields) array(name string, role Role, s []uint64) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		for _, v := range s {
			f.buf = binary.AppendUvarint(f.buf, v)
		}
	case modeDecode:
		for i := range s {
			s[i] = f.uvarint()
		}
	case modeView:
		f.show(name, role, durable, append([]uint64{}, s...), s)
	case modeMarks:
		for i := range s {
			f.marks(role, &s[i])
		}
	}
}

// Uints visits a list of numbers of any length.
func (f *Fields) Uints(name string, p *[]uint64) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(len(*p)))
		for _, v := range *p {
			f.buf = binary.AppendUvarint(f.buf, v)
		}
	case modeDecode:
		*p = (*p)[:0]
		for range f.length() {
			*p = append(*p, f.uvarint())
		}
	case modeView:
		f.show(name, RolePlain, durable, append([]uint64{}, *p...), p)
	}
}

// Bytes visits opaque data.
func (f *Fields) Bytes(name string, p *[]byte) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(len(*p)))
		f.buf = append(f.buf, *p...)
	case modeDecode:
		*p = append((*p)[:0], f.take(f.length())...)
	case modeView:
		f.show(name, RolePlain, durable, append([]byte{}, *p...), p)
	}
}

// Stamp visits a logical time with its process, which may be None.
func (f *Fields) Stamp(name string, p *Stamp) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, p.Clock)
		f.buf = binary.AppendUvarint(f.buf, uint64(p.ID+1))
	case modeDecode:
		p.Clock, p.ID = f.uvarint(), f.id()
	case modeView:
		f.show(name, RoleClock, durable, fmt.Sprintf("(%d,%s)", p.Clock, f.config.Text(p.ID)), p)
	case modeMarks:
		f.marks(RoleClock, &p.Clock)
	}
}

// Message visits a message that is being held.
func (f *Fields) Message(name string, p *Message) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = p.appendBody(f.buf, 1<<fieldCount-1)
	case modeDecode:
		rest, err := p.decodeBody(f.buf, f.n)
		if f.buf = rest; err != nil {
			f.fail(err)
		}
	case modeView:
		f.show(name, RolePlain, durable, fmt.Sprintf("%+v", *p), p)
	case modeMarks:
		f.marks(RoleClock, &p.Clock)
	}
}

// Enum visits a small number that stands for one of the given names.
func Enum[E ~uint8](f *Fields, name string, p *E, names []string) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = append(f.buf, byte(*p))
	case modeDecode:
		*p = E(f.limited(uint64(len(names) - 1)))
	case modeView:
		f.show(name, RolePlain, durable, names[*p], p)
	}
}

// List visits a list of structs of any length; each visits the fields of one.
// Keep each free of captured variables and the walk does not allocate.
func List[E any](f *Fields, name string, p *[]E, each func(f *Fields, e *E)) {
	switch durable, mode := f.next(name); mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(len(*p)))
		listEach(f, durable, *p, each)
	case modeDecode:
		decodeList(f, durable, name, p, each)
	case modeView:
		f.show(name, RolePlain, durable, listTexts(f, *p, each), p)
	case modeMarks:
		listEach(f, durable, *p, each)
	}
}

func listEach[E any](f *Fields, durable bool, s []E, each func(f *Fields, e *E)) {
	outer := f.inner
	f.inner, f.durable = true, durable
	for i := range s {
		each(f, &s[i])
	}
	f.inner, f.durable = outer, outer && durable
}

// decodeList stops at the first error, so that a corrupt length costs no more memory
// than the bytes that are present.
func decodeList[E any](f *Fields, durable bool, name string, p *[]E, each func(f *Fields, e *E)) {
	*p = (*p)[:0]
	for range f.length() {
		if f.err != nil {
			return
		}
		if len(*p) < cap(*p) {
			*p = (*p)[:len(*p)+1]
		} else {
			var zero E
			*p = append(*p, zero)
		}
		listEach(f, durable, (*p)[len(*p)-1:], each)
	}
}

// listTexts shows each element as "(field,field)".
func listTexts[E any](f *Fields, s []E, each func(f *Fields, e *E)) []string {
	texts, outer := []string{}, f.view
	for i := range s {
		var parts []string
		f.view = func(v FieldView) { parts = append(parts, v.String()) }
		each(f, &s[i])
		texts = append(texts, "("+strings.Join(parts, ",")+")")
	}
	f.view = outer
	return texts
}
