// Package wire writes and reads the primitives of log entries, snapshots and handshakes:
// variable-length integers and length-prefixed bytes. Writing appends to a slice; reading
// keeps the first error, so that a decoder checks once at its end. No input makes a
// Reader panic or allocate more than the input's own length.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrTruncated is the error of a Reader whose input ends too early.
var ErrTruncated = errors.New("input ends too early")

// AppendUint appends v in 1 to 10 bytes.
func AppendUint(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

// AppendInt appends v, small absolute values in few bytes.
func AppendInt(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }

// AppendBool appends one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendBytes appends the length of v, then v.
func AppendBytes[T string | []byte](b []byte, v T) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// Reader reads what the Append functions wrote. After an error every read
// returns a zero value.
type Reader struct {
	rest []byte
	err  error
}

// NewReader returns a Reader of b, which it does not copy.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Close returns the first error, which may be that input is left over.
func (r *Reader) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		r.Fail(fmt.Errorf("%d bytes left over", len(r.rest)))
	}
	return r.err
}

// Fail records err, unless there was one before.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

// Uint reads an unsigned integer.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	return take(r, v, n)
}

// Uint32 reads what AppendUint wrote of a number of 32 bits.
func (r *Reader) Uint32() uint32 {
	v := r.Uint()
	if v > math.MaxUint32 {
		r.Fail(fmt.Errorf("the number %d has over 32 bits", v))
		return 0
	}
	return uint32(v)
}

// Int reads a signed integer.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.rest)
	return take(r, v, n)
}

func take[T int64 | uint64](r *Reader, v T, n int) T {
	switch {
	case n > 0:
		r.rest = r.rest[n:]
		return v
	case n == 0:
		r.Fail(ErrTruncated)
	default:
		r.Fail(errors.New("integer over 64 bits"))
	}
	return 0
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail(ErrTruncated)
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

// Bool reads a byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	v := r.Byte()
	if v > 1 {
		r.Fail(fmt.Errorf("%d is neither 0 nor 1", v))
	}
	return v == 1
}

// Count reads the number of elements that follow; each takes at least one
// byte, so a count above the bytes that are left is refused before anybody
// allocates room for it.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.rest)) {
		r.Fail(ErrTruncated)
		return 0
	}
	return int(n)
}

// Bytes reads length-prefixed bytes. They alias the input.
func (r *Reader) Bytes() []byte {
	n := r.Count()
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

// String reads a length-prefixed string.
func (r *Reader) String() string { return string(r.Bytes()) }

// Fixed fills v from the next len(v) bytes.
func (r *Reader) Fixed(v []byte) {
	if len(r.rest) < len(v) {
		r.Fail(ErrTruncated)
		return
	}
	copy(v, r.rest)
	r.rest = r.rest[len(v):]
}

// Rest reads all that is left. It aliases the input.
func (r *Reader) Rest() []byte {
	v := r.rest
	r.rest = nil
	return v
}
