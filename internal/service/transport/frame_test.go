package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// frameOf returns a frame as it travels.
func frameOf(k kind, payload, more []byte) []byte {
	b := append(beginFrame(nil, k), payload...)
	endFrame(b, more)
	return append(b, more...)
}

func readerOf(b []byte, most int) *frameReader {
	return &frameReader{in: bytes.NewReader(b), max: most}
}

func TestFramesSurvive(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), keptBytes/8)
	frames := []struct {
		kind       kind
		head, body []byte
	}{
		{kindPing, nil, nil},
		{kindMessage, []byte("hello"), nil},
		{kindChunk, nil, large},
		{kindHead, []byte("a"), []byte("b")},
	}
	var stream []byte
	for _, f := range frames {
		stream = append(stream, frameOf(f.kind, f.head, f.body)...)
	}
	r := readerOf(stream, 64<<20)
	for _, f := range frames {
		k, payload, err := r.next()
		if err != nil || k != f.kind {
			t.Fatalf("kind %d, error %v; want kind %d", k, err, f.kind)
		}
		if want := append(bytes.Clone(f.head), f.body...); !bytes.Equal(payload, want) {
			t.Fatalf("frame of kind %d: %d bytes came back different", f.kind, len(payload))
		}
	}
	if _, _, err := r.next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v, want EOF", err)
	}
	if cap(r.body) > keptBytes {
		t.Fatalf("a small frame after a large one leaves %d bytes allocated", cap(r.body))
	}
}

func TestDamagedFrames(t *testing.T) {
	whole := frameOf(kindMessage, []byte("payload"), nil)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(whole)
		b[at] = to
		return b
	}
	// A frame that is whole but for its version or kind.
	relabel := func(version, k byte) []byte {
		b := bytes.Clone(whole)
		b[prefixBytes], b[prefixBytes+1] = version, k
		endFrame(b, nil)
		return b
	}
	sized := func(n uint32) []byte {
		b := bytes.Clone(whole)
		binary.BigEndian.PutUint32(b, n)
		return b
	}
	for name, c := range map[string]struct {
		input []byte
		want  error
	}{
		"payload changed":  {change(prefixBytes+4, 'X'), ErrChecksum},
		"kind changed":     {change(prefixBytes+1, byte(kindPing)), ErrChecksum},
		"checksum changed": {change(5, whole[5]+1), ErrChecksum},
		"length 0":         {sized(0), &FrameSizeError{Size: 0, Max: 100}},
		"length 1":         {sized(1), &FrameSizeError{Size: 1, Max: 100}},
		"length over max":  {sized(101), &FrameSizeError{Size: 101, Max: 100}},
		"length of 4 GiB":  {sized(1<<32 - 1), &FrameSizeError{Size: 1<<32 - 1, Max: 100}},
		"cut in prefix":    {whole[:5], io.ErrUnexpectedEOF},
		"cut after prefix": {whole[:prefixBytes], io.ErrUnexpectedEOF},
		"cut in payload":   {whole[:len(whole)-1], io.ErrUnexpectedEOF},
		"newer version":    {relabel(2, byte(kindMessage)), &FrameTypeError{Version: 2, Kind: byte(kindMessage)}},
		"kind 0":           {relabel(1, 0), &FrameTypeError{Version: 1, Kind: 0}},
		"unknown kind":     {relabel(1, byte(kindEnd)), &FrameTypeError{Version: 1, Kind: byte(kindEnd)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readerOf(c.input, 100).next()
			if !sameError(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// sameError reports whether err is want, or of the same type and value.
func sameError(err, want error) bool {
	if errors.Is(err, want) {
		return true
	}
	var size *FrameSizeError
	var typ *FrameTypeError
	return errors.As(err, &size) && cmp.Equal(error(size), want) ||
		errors.As(err, &typ) && cmp.Equal(error(typ), want)
}

// TestLengthAloneAllocatesLittle sends a length and nothing else.
func TestLengthAloneAllocatesLittle(t *testing.T) {
	var prefix [prefixBytes]byte
	binary.BigEndian.PutUint32(prefix[:], 60<<20)
	r := readerOf(prefix[:], 64<<20)
	if _, _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if cap(r.body) > 2*readStep {
		t.Errorf("a mere announcement of 60 MiB allocated %d bytes", cap(r.body))
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frameOf(kindPing, nil, nil))
	f.Add(append(frameOf(kindHello, visitHello().Append(nil), nil), frameOf(kindMessage, []byte("x"), nil)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		const most = 1 << 16
		r := readerOf(input, most)
		var again []byte
		for {
			k, payload, err := r.next()
			if err != nil {
				break
			}
			if len(payload)+frameBytes > most {
				t.Fatalf("a frame of %d bytes passed", len(payload))
			}
			again = append(again, frameOf(k, payload, nil)...)
		}
		if !bytes.HasPrefix(input, again) {
			t.Fatal("what was read is not what was sent")
		}
	})
}
