package check

import (
	"encoding/binary"
	"math/bits"
)

// print is a fingerprint of 128 bits. The fingerprint of a state is the sum of those of
// its parts, each of which is a hash of the part and its position. So a step changes it
// by the difference of the parts that it changes.
type print struct{ lo, hi uint64 }

func (f *print) add(g print) { f.lo += g.lo; f.hi += g.hi }

func (f *print) sub(g print) { f.lo -= g.lo; f.hi -= g.hi }

func (f print) plus(g print) print { return print{f.lo + g.lo, f.hi + g.hi} }

func (f print) minus(g print) print { return print{f.lo - g.lo, f.hi - g.hi} }

// The keys are digits of pi and e. They are fixed, so that equal states have equal
// fingerprints in every run and on every machine.
const (
	key0 = 0x243f6a8885a308d3
	key1 = 0x13198a2e03707344
	key2 = 0xa4093822299f31d0 | 1
	key3 = 0xb7e151628aed2a6b
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// printOf returns the fingerprint of some bytes, two chains over their words.
func printOf(data []byte) print {
	f := print{key0 ^ uint64(len(data)), key1 + uint64(len(data))}
	for len(data) >= 8 {
		f = f.chain(binary.LittleEndian.Uint64(data))
		data = data[8:]
	}
	var last [8]byte
	copy(last[:], data)
	return f.chain(binary.LittleEndian.Uint64(last[:])).spread()
}

func (f print) chain(word uint64) print {
	return print{mix(f.lo^word^key2, key3^bits.RotateLeft64(word, 32)) + key1, mix(f.hi+word*key2, key0|1) ^ bits.RotateLeft64(f.lo, 23)}
}

// spread mixes all bits, so that sums of fingerprints are not weaker.
func (f print) spread() print {
	return print{finish(f.lo ^ bits.RotateLeft64(f.hi, 29)), finish(f.hi + key3*f.lo)}
}

func finish(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// printOfNumber returns the fingerprint of a number in a slot; that of zero is zero.
func printOfNumber(slot int, v uint32) print {
	if v == 0 {
		return print{}
	}
	word := uint64(slot)<<32 | uint64(v)
	return print{key1, key0}.chain(word).chain(word * key2).spread()
}
