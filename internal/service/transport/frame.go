package transport

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// frameVersion is the version of the layout of frames.
const frameVersion = 1

// kind is the kind of a frame's content. Kinds are sent to other servers: new ones are
// appended, and none is ever reused.
type kind uint8

const (
	kindHello      kind = iota + 1 // Hello, for a connection that carries messages, and later on it
	kindBulkHello                  // Hello, for a connection that carries one snapshot
	kindRefusal                    // Refusal, in answer to a Hello
	kindPing                       // nothing, or a peering.Ping: the sender is alive
	kindMessage                    // a raft message
	kindHead                       // size of a snapshot's data, and its message without them
	kindChunk                      // the next part of a snapshot's data
	kindTaken                      // nothing: the snapshot was taken over
	kindNote                       // a note, of a few bytes
	kindFrameHello                 // Hello, for a connection that carries frames of guarded names
	kindFrames                     // a batch of such frames
	kindSeat                       // commands of a server for its seat, to the leader
	kindTold                       // the leader's answers to these
	kindClock                      // a question about the clock of a server, or the answer
	kindEnd                        // not a kind
)

const (
	prefixBytes = 8 // length and checksum
	frameBytes  = 2 // version and kind, which length and checksum cover
	// maxNote bounds a note, and a message about clocks.
	maxNote = 256
	// maxSeat bounds a message about a seat in one frame.
	maxSeat = 64 << 10
	// maxNotes bounds the notes, and messages about seats, that wait for a peer.
	maxNotes = 64
	// readStep is how much memory is allocated because of a length before its bytes have
	// arrived.
	readStep = 1 << 20
	// keptBytes is the most memory that a connection keeps for its next frame.
	keptBytes = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrChecksum is the error of a frame that was damaged in transit.
var ErrChecksum = errors.New("the checksum of a frame does not match its bytes")

// FrameSizeError is the error of a frame that is too large, or too small to be
// valid.
type FrameSizeError struct{ Size, Max int }

func (e *FrameSizeError) Error() string {
	return fmt.Sprintf("a frame has %d bytes: %d to %d are allowed", e.Size, frameBytes, e.Max)
}

// FrameTypeError is the error of a frame whose version or kind is unknown, or not
// allowed at this point.
type FrameTypeError struct{ Version, Kind uint8 }

func (e *FrameTypeError) Error() string {
	if e.Version != frameVersion {
		return fmt.Sprintf("a frame has version %d: version %d is understood", e.Version, frameVersion)
	}
	return fmt.Sprintf("a frame of kind %d is not expected here", e.Kind)
}

// unexpected returns the error of a frame whose kind is not allowed at this point.
func unexpected(k kind) error { return &FrameTypeError{Version: frameVersion, Kind: uint8(k)} }

// beginFrame reserves the head of a frame in b[:0]. The caller appends the payload to the
// result.
func beginFrame(b []byte, k kind) []byte {
	return append(b[:0], 0, 0, 0, 0, 0, 0, 0, 0, frameVersion, byte(k))
}

// endFrame fills in the head of the frame b, whose payload continues in more.
func endFrame(b []byte, more []byte) {
	sum := crc32.Update(crc32.Checksum(b[prefixBytes:], castagnoli), castagnoli, more)
	binary.BigEndian.PutUint32(b, uint32(len(b)-prefixBytes+len(more)))
	binary.BigEndian.PutUint32(b[4:], sum)
}

// frameReader reads frames of at most max bytes, without their prefix.
type frameReader struct {
	in     io.Reader
	max    int
	prefix [prefixBytes]byte
	body   []byte
}

// next returns the next frame. The payload is valid until the next call.
func (r *frameReader) next() (kind, []byte, error) {
	if _, err := io.ReadFull(r.in, r.prefix[:]); err != nil {
		return 0, nil, err
	}
	size := int(binary.BigEndian.Uint32(r.prefix[:]))
	if size < frameBytes || size > r.max {
		return 0, nil, &FrameSizeError{Size: size, Max: r.max}
	}
	if err := r.fill(size); err != nil {
		return 0, nil, err
	}
	if crc32.Checksum(r.body, castagnoli) != binary.BigEndian.Uint32(r.prefix[4:]) {
		return 0, nil, ErrChecksum
	}
	version, k := r.body[0], r.body[1]
	if version != frameVersion || k == 0 || k >= byte(kindEnd) {
		return 0, nil, &FrameTypeError{Version: version, Kind: k}
	}
	return kind(k), r.body[frameBytes:], nil
}

// fill reads the next size bytes into body.
func (r *frameReader) fill(size int) error {
	if cap(r.body) > keptBytes && size <= keptBytes {
		r.body = nil
	}
	r.body = r.body[:0]
	for len(r.body) < size {
		have := len(r.body)
		n := min(size-have, max(readStep, have))
		r.body = slices.Grow(r.body, n)[:have+n]
		if _, err := io.ReadFull(r.in, r.body[have:]); err != nil {
			return noEOF(err)
		}
	}
	return nil
}

// noEOF turns an end of the input inside a frame into a different error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
