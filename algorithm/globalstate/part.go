package globalstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Part is what one process contributes to a global state.
type Part struct {
	// States are those of the layers above the recorder, bottom first, as
	// process.AppendState encodes them.
	States [][]byte
	// Received is what was on the links to the process, in order of arrival.
	Received []process.Message
}

// observe encodes the layers above as Part.States.
func (m *machine) observe() []byte {
	state := binary.AppendUvarint(nil, uint64(len(m.above)))
	for _, layer := range m.above {
		state = appendBytes(state, process.AppendState(nil, layer))
	}
	return state
}

// encode is the data of a PART: the state, and then the messages.
func (r *recording) encode() []byte {
	data := append([]byte(nil), r.state...)
	data = binary.AppendUvarint(data, uint64(len(r.received)))
	for _, in := range r.received {
		data = binary.AppendUvarint(data, uint64(in.from))
		data = appendBytes(data, in.data)
	}
	return data
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

// DecodePart reads the data of a PART that process "to" sent, among n processes. For
// any data, it returns an error or a part whose messages go from an existing process to
// that one.
func DecodePart(data []byte, to process.ID, n int) (Part, error) {
	d := decoder{rest: data}
	var p Part
	for range d.count() {
		p.States = append(p.States, slices.Clone(d.bytes()))
	}
	for range d.count() {
		from := d.number()
		var m process.Message
		if err := m.DecodeRaw(d.bytes(), n); err != nil && d.err == nil {
			d.err = fmt.Errorf("globalstate: %w", err)
		}
		if d.err == nil && from >= uint64(n) {
			d.err = fmt.Errorf("globalstate: message from rank %d: there are %d processes", from, n)
		}
		if d.err != nil {
			break
		}
		m.From, m.To = process.ID(from), to
		p.Received = append(p.Received, m)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = fmt.Errorf("globalstate: part has %d bytes too many", len(d.rest))
	}
	if d.err != nil {
		return Part{}, d.err
	}
	return p, nil
}

// decoder reads numbers and byte strings. Its first error stays.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) number() uint64 {
	v, size := binary.Uvarint(d.rest)
	if d.err != nil || size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return v
}

// count reads the number of elements that follow. Each takes at least one byte, so a
// number above the remaining bytes is corrupt.
func (d *decoder) count() uint64 {
	v := d.number()
	if v > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return v
}

func (d *decoder) bytes() []byte {
	n := d.count()
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errors.New("globalstate: part ends too early")
	}
	d.rest = nil
}
