package process

import (
	"fmt"
	"strconv"
)

// AppendState appends the encoded state of m to dst. Equal states have equal
// encodings. It allocates only to grow dst.
func AppendState(dst []byte, m Machine) []byte {
	var f Fields
	return f.Append(dst, m)
}

// AppendDurable appends the encoded durable fields of m to dst.
func AppendDurable(dst []byte, m Machine) []byte {
	f := Fields{durableOnly: true}
	return f.append(dst, m)
}

// DecodeState loads an encoded state into m, which must have been made with the
// same configuration of n processes as the one that was encoded. On an error m
// is in no particular state and must not be used.
func DecodeState(src []byte, m Machine, n int) error {
	var f Fields
	return f.Decode(src, m, n)
}

// DecodeDurable loads encoded durable fields into m and leaves all other fields
// as they are.
func DecodeDurable(src []byte, m Machine, n int) error {
	f := Fields{durableOnly: true}
	return f.decode(src, m, n)
}

// Append is AppendState with a walk that the caller keeps. An interface method makes
// its argument escape, so keeping the walk saves one allocation per call.
func (f *Fields) Append(dst []byte, m Machine) []byte {
	*f = Fields{}
	return f.append(dst, m)
}

// AppendDurable is the function AppendDurable with a walk that the caller keeps.
func (f *Fields) AppendDurable(dst []byte, m Machine) []byte {
	*f = Fields{durableOnly: true}
	return f.append(dst, m)
}

// Decode is DecodeState with a walk that the caller keeps.
func (f *Fields) Decode(src []byte, m Machine, n int) error {
	*f = Fields{}
	return f.decode(src, m, n)
}

func (f *Fields) append(dst []byte, m Machine) []byte {
	f.mode, f.buf = modeEncode, dst
	m.Fields(f)
	dst, f.buf = f.buf, nil
	return dst
}

func (f *Fields) decode(src []byte, m Machine, n int) error {
	f.mode, f.buf, f.n = modeDecode, src, n
	m.Fields(f)
	rest, err := f.buf, f.err
	f.buf = nil
	switch {
	case err != nil:
		return fmt.Errorf("process: state field %s%s: %w", f.within, f.at, err)
	case len(rest) > 0:
		return fmt.Errorf("process: state has %d bytes too many", len(rest))
	}
	return nil
}

// Copy makes the state of dst equal to that of src. Both must be machines of the same
// Spec and Config at the same process. The buffer is for reuse; it is returned, perhaps
// grown.
func Copy(dst, src Machine, n int, buf []byte) []byte {
	buf = AppendState(buf[:0], src)
	err := DecodeState(buf, dst, n)
	Assert(err == nil, "an encoded state can be decoded")
	return buf
}

// Hash returns a fingerprint of the state that is the same on every machine and
// in every run (64-bit FNV-1a of its encoding).
func Hash(m Machine) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range AppendState(nil, m) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

// Marks calls visit for every number in the state of m that has a role, so that a host
// can read or rewrite logical times, fences and terms.
func Marks(m Machine, visit func(role Role, p *uint64)) {
	f := Fields{mode: modeMarks, marks: visit}
	m.Fields(&f)
}

// HighWater returns the largest logical time or sequence number and the largest fence
// in the state of m. A machine made with a Base of at least these does not repeat
// numbers that m has used.
func HighWater(m Machine) Base {
	var b Base
	Marks(m, func(role Role, p *uint64) {
		switch role {
		case RoleClock, RoleSeq:
			b.Clock = max(b.Clock, *p)
		case RoleFence:
			b.Fence = max(b.Fence, Fence(*p))
		}
	})
	return b
}

// length reads a length. Every element takes at least one byte, so a length
// beyond the bytes that are left is corrupt.
func (f *Fields) length() int { return int(f.limited(uint64(len(f.buf)))) }

// View returns the fields of m in order, as shown to people and in traces. Processes
// are shown by their labels in c.
func View(m Machine, c *Config) []FieldView {
	var views []FieldView
	f := Fields{
		mode:   modeView,
		view:   func(v FieldView) { views = append(views, v) },
		config: c,
	}
	m.Fields(&f)
	return views
}

// Change is a field whose value differs between two states.
type Change struct {
	Name   string
	Before any
	After  any
}

// Diff returns what changed between two views of one machine, in field order.
func Diff(before, after []FieldView) []Change {
	Assert(len(before) == len(after), "a machine always names the same fields")
	var changes []Change
	for i, b := range before {
		if a := after[i]; a.String() != b.String() {
			changes = append(changes, Change{Name: b.Name, Before: b.Value, After: a.Value})
		}
	}
	return changes
}

// Texts shows a list of processes. A list of texts, unlike a list of numbers, also shows
// None.
func (c *Config) Texts(ids []ID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = c.Text(id)
	}
	return texts
}

// Text shows a process by its label, or "-" for None.
func (c *Config) Text(p ID) string {
	if p == None {
		return "-"
	}
	return strconv.FormatUint(uint64(c.Label(p)), 10)
}
