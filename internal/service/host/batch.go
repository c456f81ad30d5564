package host

import (
	"fmt"

	"github.com/conclave-io/conclave/internal/kit/wire"
)

// batchVersion is the version of the encoding, the first byte of a batch.
const batchVersion = 1

// The kinds of frames, the first byte of each.
const (
	frameLock     = 1 // name, message
	frameWake     = 2 // name
	frameResumed  = 3
	frameHandover = 4 // last, message
	frameAdopted  = 5
	frameRefused  = 6
	frameCut      = 7 // prefix, message of a recorder
	frameSystem   = 8 // message of the watch stack
)

// maxBatch bounds the bytes of frames in a batch with more than one frame.
const maxBatch = 64 << 10

// batch is one message on a lane. Its frames share the memory of the input.
type batch struct {
	epoch  uint64
	first  uint64 // the number of the first frame, from 1
	ack    uint64 // all frames up to this one have come
	frames []byte // each with its length before it
}

func (b *batch) append(dst []byte) []byte {
	dst = append(dst, batchVersion)
	dst = wire.AppendUint(dst, b.epoch)
	dst = wire.AppendUint(dst, b.first)
	dst = wire.AppendUint(dst, b.ack)
	return append(dst, b.frames...)
}

func decodeBatch(src []byte) (b batch, err error) {
	r := wire.NewReader(src)
	if v := r.Byte(); r.Err() == nil && v != batchVersion {
		r.Fail(fmt.Errorf("version is %d, want %d", v, batchVersion))
	}
	b.epoch, b.first, b.ack = r.Uint(), r.Uint(), r.Uint()
	if r.Err() == nil && b.first == 0 {
		r.Fail(fmt.Errorf("first frame is 0, want at least 1"))
	}
	if r.Err() == nil {
		b.frames = r.Rest()
	}
	if err = r.Close(); err != nil {
		return batch{}, fmt.Errorf("host: batch: %w", err)
	}
	return b, nil
}

// frame is one frame. Name and message share the memory of the input.
type frame struct {
	kind    byte
	name    []byte // frameCut: a prefix
	message []byte // frameLock, frameCut: by the codec of the algorithm; frameHandover: a part of a home
	last    bool   // frameHandover: this is the last part
}

func (f *frame) append(dst []byte) []byte {
	dst = append(dst, f.kind)
	switch f.kind {
	case frameLock, frameWake, frameCut:
		dst = wire.AppendBytes(dst, f.name)
	case frameHandover:
		dst = wire.AppendBool(dst, f.last)
	}
	return append(dst, f.message...)
}

func decodeFrame(src []byte) (f frame, err error) {
	r := wire.NewReader(src)
	switch f.kind = r.Byte(); f.kind {
	case frameLock, frameCut:
		f.name = r.Bytes()
		f.message = r.Rest()
	case frameWake:
		f.name = r.Bytes()
	case frameHandover:
		f.last = r.Bool()
		f.message = r.Rest()
	case frameSystem:
		f.message = r.Rest()
	case frameResumed, frameAdopted, frameRefused:
	default:
		r.Fail(fmt.Errorf("unknown kind %d", f.kind))
	}
	if err = r.Close(); err != nil {
		return frame{}, fmt.Errorf("host: frame: %w", err)
	}
	return f, nil
}

// cut takes the first frame off.
func cut(frames []byte) (f, rest []byte, err error) {
	r := wire.NewReader(frames)
	f = r.Bytes()
	if r.Err() != nil {
		return nil, nil, fmt.Errorf("host: batch: %w", r.Err())
	}
	return f, r.Rest(), nil
}
