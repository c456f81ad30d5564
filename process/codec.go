package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// MessageVersion is the version of the encoding, the first byte of each message.
const MessageVersion = 1

// MaxMessageSize is the largest encoded message, in bytes, that Decode accepts.
const MaxMessageSize = 16 << 20

var errTruncated = errors.New("the data ends too early")

// Codec encodes the messages of one Spec. The wire carries exactly the fields
// that the Spec declares; zero ones cost nothing.
type Codec struct {
	spec *Spec
	n    int
}

// NewCodec returns a codec for messages of spec among n processes.
func NewCodec(spec *Spec, n int) *Codec { return &Codec{spec: spec, n: n} }

// Append appends the encoded message to dst. It allocates only to grow dst.
func (c *Codec) Append(dst []byte, m *Message) []byte {
	decl := c.spec.Message(m.Layer, m.Type)
	Assert(decl != nil, "a message has a declared type")
	dst = append(dst, MessageVersion)
	return m.appendBody(dst, decl.FieldSet())
}

// Decode reads one encoded message into m, reusing its slices. For any src it returns
// an error or a message that is valid for the machines of the Spec: of a declared type,
// with declared fields, between existing processes. After an error m must not be used.
func (c *Codec) Decode(src []byte, m *Message) error {
	if len(src) > MaxMessageSize {
		return fmt.Errorf("process: message of %d bytes is larger than %d", len(src), MaxMessageSize)
	}
	if len(src) == 0 {
		return fmt.Errorf("process: message: %w", errTruncated)
	}
	if src[0] != MessageVersion {
		return fmt.Errorf("process: message has version %d, this program reads version %d", src[0], MessageVersion)
	}
	rest, err := m.decodeBody(src[1:], c.n)
	if err != nil {
		return fmt.Errorf("process: message: %w", err)
	}
	if len(rest) > 0 {
		return fmt.Errorf("process: message has %d bytes too many", len(rest))
	}
	return c.check(m)
}

func (c *Codec) check(m *Message) error {
	decl := c.spec.Message(m.Layer, m.Type)
	if decl == nil {
		return fmt.Errorf("process: %s has no message of type %d in layer %d", c.spec.Name, m.Type, m.Layer)
	}
	if extra := m.FieldsSet() &^ decl.FieldSet(); extra != 0 {
		return fmt.Errorf("process: %s does not declare field %s of %s", c.spec.Name, extra.first(), decl.Name)
	}
	return nil
}

func (s FieldSet) first() Field {
	for f := range fieldCount {
		if s.Has(f) {
			return f
		}
	}
	return fieldCount
}

// AppendRaw appends an encoded message with all fields it has, for a carrier that
// transports messages of the layers above inside its own.
func (m *Message) AppendRaw(dst []byte) []byte {
	return m.appendBody(append(dst, MessageVersion), 1<<fieldCount-1)
}

// DecodeRaw reads what AppendRaw wrote among n processes. The types and fields
// of the message are unchecked.
func (m *Message) DecodeRaw(src []byte, n int) error {
	if len(src) == 0 || src[0] != MessageVersion {
		return errors.New("process: carried message has an unknown version")
	}
	rest, err := m.decodeBody(src[1:], n)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%d bytes too many", len(rest))
	}
	return err
}

// appendBody writes type, layer, from and to, a mask of the fields that follow,
// and those fields in the order of the Field constants.
func (m *Message) appendBody(dst []byte, declared FieldSet) []byte {
	set := m.FieldsSet() & declared
	dst = append(dst, byte(m.Type), m.Layer)
	dst = binary.AppendUvarint(dst, uint64(m.From+1))
	dst = binary.AppendUvarint(dst, uint64(m.To+1))
	dst = binary.AppendUvarint(dst, uint64(set))
	if set.Has(FieldSubject) {
		dst = binary.AppendUvarint(dst, uint64(m.Subject+1))
	}
	for f, v := range [...]uint64{uint64(m.Term), m.Seq, m.Clock, uint64(m.Fence)} {
		if set.Has(FieldTerm + Field(f)) {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	if set.Has(FieldValue) {
		dst = binary.AppendVarint(dst, m.Value)
	}
	return m.appendSlices(dst, set)
}

func (m *Message) appendSlices(dst []byte, set FieldSet) []byte {
	if set.Has(FieldVector) {
		dst = binary.AppendUvarint(dst, uint64(len(m.Vector)))
		for _, v := range m.Vector {
			dst = binary.AppendUvarint(dst, v)
		}
	}
	if set.Has(FieldIDs) {
		dst = binary.AppendUvarint(dst, uint64(len(m.IDs)))
		for _, id := range m.IDs {
			dst = binary.AppendUvarint(dst, uint64(id+1))
		}
	}
	if set.Has(FieldData) {
		dst = binary.AppendUvarint(dst, uint64(len(m.Data)))
		dst = append(dst, m.Data...)
	}
	return dst
}

// reader takes numbers off the front of a buffer and remembers the first error.
type reader struct {
	buf []byte
	n   int
	err error
}

func (m *Message) decodeBody(src []byte, n int) (rest []byte, err error) {
	*m = Message{Vector: m.Vector[:0], IDs: m.IDs[:0], Data: m.Data[:0]}
	if len(src) < 2 {
		return nil, errTruncated
	}
	m.Type, m.Layer = Type(src[0]), src[1]
	r := reader{buf: src[2:], n: n}
	m.From, m.To = r.id(), r.id()
	set := FieldSet(r.limited(1<<fieldCount - 1))
	if set.Has(FieldSubject) {
		m.Subject = r.id()
	}
	for f, p := range [...]*uint64{(*uint64)(&m.Term), &m.Seq, &m.Clock, (*uint64)(&m.Fence)} {
		if set.Has(FieldTerm + Field(f)) {
			*p = r.uvarint()
		}
	}
	if set.Has(FieldValue) {
		m.Value = r.varint()
	}
	r.slices(m, set)
	if r.err == nil && m.FieldsSet() != set {
		r.err = errors.New("a field that is present is zero")
	}
	return r.buf, r.err
}

func (r *reader) slices(m *Message, set FieldSet) {
	if set.Has(FieldVector) {
		for range r.length() {
			m.Vector = append(m.Vector, r.uvarint())
		}
	}
	if set.Has(FieldIDs) {
		for range r.length() {
			m.IDs = append(m.IDs, r.id())
		}
	}
	if set.Has(FieldData) {
		m.Data = append(m.Data, r.take(r.length())...)
	}
}

// fail records the first error; after it every number reads as 0.
func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.buf = nil
}

func (r *reader) uvarint() uint64 {
	v, size := binary.Uvarint(r.buf)
	if size <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.buf = r.buf[size:]
	return v
}

func (r *reader) varint() int64 {
	v, size := binary.Varint(r.buf)
	if size <= 0 {
		r.fail(errTruncated)
		return 0
	}
	r.buf = r.buf[size:]
	return v
}

func (r *reader) limited(limit uint64) uint64 {
	v := r.uvarint()
	if v > limit {
		r.fail(fmt.Errorf("%d is larger than %d", v, limit))
		return 0
	}
	return v
}

func (r *reader) id() ID { return ID(r.limited(uint64(r.n))) - 1 }

// length reads a length; each element takes at least one byte of the rest.
func (r *reader) length() int {
	n := r.uvarint()
	if n > uint64(len(r.buf)) {
		r.fail(errTruncated)
		return 0
	}
	return int(n)
}

func (r *reader) take(n int) []byte {
	if n > len(r.buf) {
		r.fail(errTruncated)
		return nil
	}
	taken := r.buf[:n]
	r.buf = r.buf[n:]
	return taken
}
