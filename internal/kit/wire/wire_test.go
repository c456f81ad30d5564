package wire

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64().Draw(t, "u")
		i := rapid.Int64().Draw(t, "i")
		flag := rapid.Bool().Draw(t, "flag")
		text := rapid.String().Draw(t, "text")

		b := AppendUint(nil, u)
		b = AppendInt(b, i)
		b = AppendBool(b, flag)
		b = AppendBytes(b, text)
		b = append(b, 1, 2, 3, 4)

		r := NewReader(b)
		var fixed [4]byte
		if r.Uint() != u || r.Int() != i || r.Bool() != flag || r.String() != text {
			t.Fatal("a value changed on the way")
		}
		if r.Fixed(fixed[:]); fixed != [4]byte{1, 2, 3, 4} {
			t.Fatal("the fixed bytes changed on the way")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEveryPrefixIsTruncated(t *testing.T) {
	b := AppendBytes(AppendUint(nil, math.MaxUint64), "conclave")
	for n := range len(b) {
		r := NewReader(b[:n])
		r.Uint()
		_ = r.String()
		if err := r.Close(); !errors.Is(err, ErrTruncated) {
			t.Errorf("%d of %d bytes: %v", n, len(b), err)
		}
	}
}

func TestHugeCountAllocatesNothing(t *testing.T) {
	r := NewReader(AppendUint(nil, 1<<40))
	if n := r.Count(); n != 0 || !errors.Is(r.Err(), ErrTruncated) {
		t.Fatalf("count %d, error %v", n, r.Err())
	}
}

func TestLeftOverIsAnError(t *testing.T) {
	if err := NewReader([]byte{1}).Close(); err == nil {
		t.Fatal("a byte left over went unnoticed")
	}
}

func FuzzReader(f *testing.F) {
	f.Add(AppendBytes(AppendInt(nil, -1), []byte("x")))
	f.Add(bytes.Repeat([]byte{0xff}, 12))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(b)
		_, _, _, _ = r.Uint(), r.Int(), r.Bool(), r.Bytes()
		_ = r.Close()
	})
}
