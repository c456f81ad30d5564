package phiaccrual

import "math/bits"

const (
	unitsPerD = 256
	// With samples below 2^20 and at most 2^10 of them, everything that is computed
	// from a window fits into 64 bits: W times the sum of squares is below 2^60.
	maxSample = 1<<20 - 1
	maxWindow = 1 << 10

	minDeviation = unitsPerD / 2

	longestSilence = 16 // that counts as a sample, in P
)

// maxLevel is the highest level of the table.
const maxLevel = 16

// tail is z in 1024ths: at most 10^-phi of a normal distribution lies beyond
// tail[phi-1]/1024 deviations above the mean. One 1024th less is not enough.
var tail = [maxLevel]uint64{
	1313, 2383, 3165, 3809, 4368, 4868, 5325, 5747,
	6142, 6515, 6867, 7204, 7526, 7835, 8132, 8420,
}

const tailUnit = 1024

// window holds the last intervals between heartbeats, in units of D/256.
type window struct {
	values []uint64
	next   int // the oldest, once the window is full
}

// add puts a sample into the window, replacing the oldest if the window is full.
func (w *window) add(sample uint64, size int) {
	if len(w.values) < size {
		w.values = append(w.values, sample)
		return
	}
	w.values[w.next] = sample
	w.next = (w.next + 1) % size
}

// reaches returns the number of units after which phi reaches a level.
func (w *window) reaches(level int) uint64 {
	mean, deviation := w.moments()
	return mean + up(tail[level-1]*deviation, tailUnit)
}

// moments returns the mean and the standard deviation, rounded up. The variance is
// (W sum of squares - square of the sum) / W^2, so its root needs no fraction.
func (w *window) moments() (mean, deviation uint64) {
	n, sum, squares := uint64(len(w.values)), uint64(0), uint64(0)
	for _, v := range w.values {
		sum += v
		squares += v * v
	}
	return up(sum, n), max(minDeviation, up(root(n*squares-sum*sum), n))
}

// up is a/b rounded up.
func up(a, b uint64) uint64 { return (a + b - 1) / b }

// root is the square root, rounded up, by Newton's method from above: the value
// decreases to the root rounded down.
func root(v uint64) uint64 {
	if v == 0 {
		return 0
	}
	r := uint64(1) << ((bits.Len64(v) + 1) / 2)
	for {
		next := (r + v/r) / 2
		if next >= r {
			break
		}
		r = next
	}
	if r*r < v {
		r++
	}
	return r
}
