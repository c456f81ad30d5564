package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/conclave-io/conclave/process"
)

// What an input is of, in the two low bits of its first byte.
const (
	ofStep = iota
	ofHost
	ofMessage

	ofBits = 3
)

// What else an input has, in its first byte.
const (
	hasCause = 4 << iota
	hasState
	hasChoices
	hasBudget

	hasBits = 1<<6 - 1
)

// The fields of an event that an input has.
const (
	eventLayer = 1 << iota
	eventTimer
	eventPeer
	eventTerm
	eventFence
	eventValue
	eventIncarnation
	eventNow
	eventMessage
	eventData

	eventBits = 1<<10 - 1
)

// encode appends the input of an entry to the data: everything from which the rest
// follows.
func (j *Journal) encode(r *entry) {
	head := byte(ofHost)
	var choices []int
	budget := process.Whole
	switch {
	case r.step != nil:
		head, choices, budget = ofStep, r.step.Choices, r.step.Budget
	case r.message != nil:
		head = ofMessage
	}
	if r.cause > 0 {
		head |= hasCause
	}
	if j.isPut {
		head |= hasState
	}
	if len(choices) > 0 {
		head |= hasChoices
	}
	if budget != process.Whole {
		head |= hasBudget
	}
	id, last := uint64(len(j.time)+1), int64(0)
	if id > 1 {
		last = j.time[id-2]
	}
	b := append(j.data, head, r.kind)
	b = binary.AppendUvarint(b, uint64(r.process))
	b = binary.AppendVarint(b, r.time-last)
	if r.cause > 0 {
		b = binary.AppendUvarint(b, id-r.cause)
	}
	if j.isPut {
		b = appendBytes(b, j.put)
		j.isPut = false
	}
	if len(choices) > 0 {
		b = binary.AppendUvarint(b, uint64(len(choices)))
		for _, c := range choices {
			b = binary.AppendUvarint(b, uint64(c))
		}
	}
	if budget != process.Whole {
		b = binary.AppendUvarint(b, uint64(budget))
	}
	switch head & ofBits {
	case ofStep:
		b = j.appendEvent(b, r.step.Event)
	case ofMessage:
		j.wire = j.codec.Append(j.wire[:0], r.message)
		b = appendBytes(b, j.wire)
		b = appendBytes(b, []byte(r.note))
	default:
		b = appendBytes(b, []byte(r.note))
	}
	j.data = b
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// appendEvent appends the fields of an event that are not zero. For the peer, rank 0 is
// zero and None is 1.
func (j *Journal) appendEvent(b []byte, ev *process.Event) []byte {
	fields := [...]uint64{
		uint64(ev.Layer), uint64(ev.Timer), 0, uint64(ev.Term), uint64(ev.Fence), zigzag(ev.Value), ev.Incarnation, zigzag(int64(ev.Now)),
	}
	if ev.Peer != 0 {
		fields[2] = uint64(ev.Peer+1) + 1
	}
	set := uint64(0)
	for i, v := range fields {
		if v != 0 {
			set |= 1 << i
		}
	}
	if ev.Message != nil {
		set |= eventMessage
	}
	if len(ev.Data) > 0 {
		set |= eventData
	}
	b = binary.AppendUvarint(b, set)
	for _, v := range fields {
		if v != 0 {
			b = binary.AppendUvarint(b, v)
		}
	}
	if ev.Message != nil {
		j.wire = j.codec.Append(j.wire[:0], ev.Message)
		b = appendBytes(b, j.wire)
	}
	if len(ev.Data) > 0 {
		b = appendBytes(b, ev.Data)
	}
	return b
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// input is what an entry was encoded from.
type input struct {
	of      byte
	kind    uint8
	process process.ID
	passed  int64  // since the record before
	back    uint64 // how many records ago its cause was, or 0
	put     []byte // nil: the machine is as it was
	choices []int
	budget  int
	event   process.Event
	message process.Message
	note    string
}

var errShort = errors.New("it ends too early")

// decoder takes pieces off the front of a buffer and remembers the first error.
type decoder struct {
	buf []byte
	err error
}

// decode reads one input from the front of a buffer, and returns what is left. Whatever
// is there, a nil error means that the fields are within their bounds. The input keeps
// parts of the buffer.
func (j *Journal) decode(buf []byte, in *input) (rest []byte, err error) {
	d := decoder{buf: buf}
	head := d.byte()
	*in = input{of: head & ofBits, kind: d.byte(), budget: process.Whole, choices: in.choices[:0], message: in.message}
	in.process = process.ID(d.below(uint64(j.config.N), "process"))
	in.passed = unzigzag(d.uvarint())
	if head&hasCause != 0 {
		in.back = d.uvarint()
	}
	if head&hasState != 0 {
		in.put = d.bytes()
	}
	if head&hasChoices != 0 {
		for range d.length() {
			in.choices = append(in.choices, int(d.below(1<<31, "choice")))
		}
	}
	if head&hasBudget != 0 {
		in.budget = int(d.below(1<<31, "number of effects"))
	}
	switch {
	case head&^hasBits != 0 || in.of == ofBits || in.kind == 0 || int(in.kind) >= len(Kinds):
		d.fail(fmt.Errorf("unknown input of form %d and kind %d", head, in.kind))
	case in.of == ofStep:
		d.event(j, in)
	case in.of == ofMessage:
		d.message(j, in)
		in.note = string(d.bytes())
	default:
		in.note = string(d.bytes())
	}
	return d.buf, d.err
}

func (d *decoder) message(j *Journal, in *input) {
	data := d.bytes()
	if d.err == nil {
		d.fail(j.codec.Decode(data, &in.message))
	}
}

func (d *decoder) event(j *Journal, in *input) {
	ev := &in.event
	ev.Kind = process.Kind(in.kind)
	set := d.below(eventBits+1, "set of fields")
	var fields [8]uint64
	for i := range fields {
		if set&(1<<i) != 0 {
			if fields[i] = d.uvarint(); fields[i] == 0 {
				d.fail(errors.New("a field that is present is zero"))
			}
		}
	}
	ev.Layer, ev.Timer = uint8(fields[0]), process.Timer(fields[1])
	if peer := fields[2]; peer > uint64(j.config.N)+1 {
		d.fail(fmt.Errorf("unknown process %d", peer))
	} else if peer > 0 {
		ev.Peer = process.ID(peer) - 2
	}
	ev.Term, ev.Fence = process.Term(fields[3]), process.Fence(fields[4])
	ev.Value, ev.Incarnation, ev.Now = unzigzag(fields[5]), fields[6], process.Duration(unzigzag(fields[7]))
	if fields[0] > 255 || fields[1] > 1<<32-1 {
		d.fail(fmt.Errorf("unknown timer %d of layer %d", fields[1], fields[0]))
	}
	if set&eventMessage != 0 {
		d.message(j, in)
		ev.Message = &in.message
	}
	if set&eventData != 0 {
		ev.Data = d.bytes()
	}
	d.fail(j.check(in))
}

// check refuses events that no host gives a machine.
func (j *Journal) check(in *input) error {
	ev := &in.event
	l := j.spec.Layer(ev.Layer)
	switch {
	case ev.Kind < process.Start || ev.Kind > process.Granted:
		return fmt.Errorf("unknown event of kind %d", ev.Kind)
	case l == nil:
		return fmt.Errorf("unknown layer %d", ev.Layer)
	case (ev.Kind == process.Deliver) != (ev.Message != nil):
		return errors.New("a message belongs to a delivery")
	case ev.Kind == process.Deliver && (ev.Message.To != in.process || ev.Message.From == process.None || ev.Message.From == in.process):
		return errors.New("a message goes from another process to this one")
	case ev.Kind == process.Fire && (ev.Timer.Name() == 0 || int(ev.Timer.Name()) > len(l.Timers) || int(ev.Timer.Peer()) >= j.config.N):
		return fmt.Errorf("unknown timer %d", ev.Timer)
	}
	return nil
}

// fail records the first error; after it every number reads as 0.
func (d *decoder) fail(err error) {
	if err == nil {
		return
	}
	if d.err == nil {
		d.err = err
	}
	d.buf = nil
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) uvarint() uint64 {
	v, size := binary.Uvarint(d.buf)
	if size <= 0 {
		d.fail(errShort)
		return 0
	}
	d.buf = d.buf[size:]
	return v
}

func (d *decoder) below(limit uint64, what string) uint64 {
	v := d.uvarint()
	if v >= limit {
		d.fail(fmt.Errorf("%s %d must be less than %d", what, v, limit))
		return 0
	}
	return v
}

func (d *decoder) length() int { return int(d.below(uint64(len(d.buf))+1, "length")) }

func (d *decoder) bytes() []byte { return d.take(d.uvarint()) }

// take returns the next n bytes, or nil.
func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.buf)) {
		d.fail(errShort)
		return nil
	}
	b := d.buf[:n:n]
	d.buf = d.buf[n:]
	return b
}
