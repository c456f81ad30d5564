package host

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/conclave-io/conclave/internal/kit/wire"
	"github.com/conclave-io/conclave/internal/service/version"
	"github.com/conclave-io/conclave/internal/test/golden"
)

// FuzzBatch: whatever comes, it is refused, or read and written to the same.
func FuzzBatch(f *testing.F) {
	one := (&frame{kind: frameLock, name: []byte("a/1"), message: []byte{1, 2, 3}}).append(nil)
	two := (&frame{kind: frameResumed}).append(nil)
	l := link{up: true}
	l.add(one)
	l.add(two)
	b, _ := l.next(7)
	f.Add(b.append(nil))
	f.Add([]byte{batchVersion, 1, 1, 0})
	f.Add([]byte{batchVersion, 1, 0, 0})
	f.Add([]byte{2, 1, 1, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := decodeBatch(data)
		if err != nil {
			return
		}
		again, err := decodeBatch(b.append(nil))
		if err != nil || !reflect.DeepEqual(again, b) {
			t.Fatalf("%x: %+v is written as %+v, %v", data, b, again, err)
		}
		for rest := b.frames; len(rest) > 0; {
			var one []byte
			if one, rest, err = cut(rest); err != nil {
				return
			}
			f, err := decodeFrame(one)
			if err != nil {
				continue
			}
			if again, err := decodeFrame(f.append(nil)); err != nil || again.kind != f.kind || !bytes.Equal(again.name, f.name) || !bytes.Equal(again.message, f.message) {
				t.Fatalf("%x: %+v is written as %+v, %v", one, f, again, err)
			}
		}
		// A link takes frames in order, or keeps them, or refuses them.
		var l link
		taken := 0
		err = each(&b, &l.got, func([]byte) error { taken++; return nil })
		if int(l.got) != taken {
			t.Fatalf("%d frames were taken, and %d counted: %v", taken, l.got, err)
		}
		if err := l.keep(&b); (err == nil) != (b.epoch == 0 || int(l.kept.count) == taken && b.first == 1 || taken == 0) && b.first == 1 {
			t.Fatalf("kept %d of %d: %v", l.kept.count, taken, err)
		}
	})
}

// TestGoldenBatch: a batch of frames is read as it was meant.
func TestGoldenBatch(t *testing.T) {
	want := []frame{
		{kind: frameLock, name: []byte("reports/daily"), message: []byte{1, 2, 0xff}},
		{kind: frameWake, name: []byte("ring/é")},
		{kind: frameResumed},
	}
	made := batch{epoch: 1 << 20, first: 300, ack: 128}
	for i := range want {
		made.frames = wire.AppendBytes(made.frames, want[i].append(nil))
	}
	b, err := decodeBatch(golden.Same(t, version.Guarded, "batch", made.append(nil)))
	if err != nil || !reflect.DeepEqual(b, made) {
		t.Fatalf("%+v is read as %+v, %v", made, b, err)
	}
	for i, rest := 0, b.frames; len(rest) > 0; i++ {
		var one []byte
		if one, rest, err = cut(rest); err != nil {
			t.Fatal(err)
		}
		f, err := decodeFrame(one)
		if err != nil || f.kind != want[i].kind || !bytes.Equal(f.name, want[i].name) || !bytes.Equal(f.message, want[i].message) {
			t.Errorf("frame %d: %+v is read as %+v, %v", i, want[i], f, err)
		}
	}
}
