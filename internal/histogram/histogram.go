// Package histogram counts durations in classes.
package histogram

import "math/bits"

// first is the upper bound of the first class, in ns. Each class is twice as wide as the
// one before.
const first = 100_000

// Classes is how many classes have an upper bound: 100 us to 56 min.
const Classes = 26

// Durations are durations by class. The zero value has none.
type Durations struct {
	// Counts has the last class without an upper bound.
	Counts [Classes + 1]uint64
	// Sum is that of all, in ns.
	Sum int64
}

// Note counts a duration in ns. One below 0, which a clock that was set back makes, counts
// as 0.
func (d *Durations) Note(ns int64) {
	ns = max(ns, 0)
	d.Counts[min(bits.Len64(uint64(max(ns-1, 0))/first), Classes)]++
	d.Sum += ns
}

// Buckets returns how many there are in all, and how many are at most as long as each
// bound, in seconds.
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
