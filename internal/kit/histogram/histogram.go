// Package histogram counts durations in classes of exponentially growing width.
package histogram

import "math/bits"

// first is the upper bound of the first class, in ns. Each class is twice as wide as the
// one before.
const first = 100_000

// Classes is the number of classes with an upper bound: 100 us to 56 min.
const Classes = 26

// Durations counts durations by class. The zero value is empty.
type Durations struct {
	// Counts has one more class, without an upper bound.
	Counts [Classes + 1]uint64
	// Sum is the sum of all durations, in ns.
	Sum int64
}

// Note counts a duration in ns. A negative one, which occurs if a clock was set back, counts
// as 0.
func (d *Durations) Note(ns int64) {
	ns = max(ns, 0)
	d.Counts[min(bits.Len64(uint64(max(ns-1, 0))/first), Classes)]++
	d.Sum += ns
}

// Buckets returns the number of durations, and how many are at most as long as each bound, in
// seconds.
func (d *Durations) Buckets() (all uint64, atMost map[float64]uint64) {
	atMost = make(map[float64]uint64, Classes)
	for i, n := range d.Counts {
		all += n
		if i < Classes {
			atMost[float64(uint64(first)<<i)/1e9] = all
		}
	}
	return all, atMost
}
