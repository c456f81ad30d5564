package process

import "slices"

// Type is the position of a message type in Spec.Messages, from 1.
type Type uint8

// Message is what processes send each other, one struct for all algorithms. The fields
// below the line are a fixed vocabulary. A Spec declares, for each type, which of them
// it uses and what the paper calls them. Unused fields are zero.
type Message struct {
	Type  Type
	Layer uint8 // of the stack that sent it; set by the host
	From  ID    // set by Effects
	To    ID    // set by Effects; None while a broadcast is not yet expanded

	Subject ID       // the process that the message is about
	Term    Term     // election, coordinator or token generation
	Seq     uint64   // number of a request, hop, ballot or update
	Clock   uint64   // logical time
	Fence   Fence    // number of a grant
	Value   int64    // any other number
	Vector  []uint64 // one number per process, or a list of numbers
	IDs     []ID     // a list of processes
	Data    []byte   // opaque to the algorithm
}

// Field is one optional field of a Message.
type Field uint8

// The optional fields of a Message, in their order on the wire.
const (
	FieldSubject Field = iota
	FieldTerm
	FieldSeq
	FieldClock
	FieldFence
	FieldValue
	FieldVector
	FieldIDs
	FieldData

	fieldCount
)

var fieldNames = [...]string{"subject", "term", "seq", "clock", "fence", "value", "vector", "ids", "data"}

// String returns the name of the field in lower case.
func (f Field) String() string {
	if f < fieldCount {
		return fieldNames[f]
	}
	return "field(?)"
}

// FieldSet is a set of optional message fields, one bit each.
type FieldSet uint16

// Has reports whether the field is in the set.
func (s FieldSet) Has(f Field) bool { return s&(1<<f) != 0 }

// With returns the set with the field added.
func (s FieldSet) With(f Field) FieldSet { return s | 1<<f }

// FieldsSet returns the optional fields that are not zero.
func (m *Message) FieldsSet() FieldSet {
	var s FieldSet
	add := func(f Field, set bool) {
		if set {
			s |= 1 << f
		}
	}
	add(FieldSubject, m.Subject != 0)
	add(FieldTerm, m.Term != 0)
	add(FieldSeq, m.Seq != 0)
	add(FieldClock, m.Clock != 0)
	add(FieldFence, m.Fence != 0)
	add(FieldValue, m.Value != 0)
	add(FieldVector, len(m.Vector) > 0)
	add(FieldIDs, len(m.IDs) > 0)
	add(FieldData, len(m.Data) > 0)
	return s
}

// CopyFrom makes m an independent copy of src, reusing the slices of m.
func (m *Message) CopyFrom(src *Message) {
	m.Type, m.Layer, m.From, m.To = src.Type, src.Layer, src.From, src.To
	m.Subject, m.Term, m.Seq = src.Subject, src.Term, src.Seq
	m.Clock, m.Fence, m.Value = src.Clock, src.Fence, src.Value
	m.Vector, m.IDs, m.Data = m.Vector[:0], m.IDs[:0], m.Data[:0]
	if len(src.Vector)+len(src.IDs)+len(src.Data) == 0 {
		return // like most messages
	}
	m.Vector = append(m.Vector, src.Vector...)
	m.IDs = append(m.IDs, src.IDs...)
	m.Data = append(m.Data, src.Data...)
}

// Equal reports whether the two messages are equal, field by field. An empty slice
// equals a nil one.
func (m *Message) Equal(o *Message) bool {
	return m.Type == o.Type && m.Layer == o.Layer && m.From == o.From && m.To == o.To &&
		m.Subject == o.Subject && m.Term == o.Term && m.Seq == o.Seq && m.Clock == o.Clock &&
		m.Fence == o.Fence && m.Value == o.Value &&
		slices.Equal(m.Vector, o.Vector) && slices.Equal(m.IDs, o.IDs) && slices.Equal(m.Data, o.Data)
}
