package sim

import (
	"testing"

	"github.com/conclave-io/conclave/process"
	"pgregory.net/rapid"
)

// A table does what a map does, and forgets only what is stale.
func TestTableIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got table
		want := map[uint64]int64{}
		limit := int64(0)
		stale := func(v int64) bool { return v < limit }
		keys := rapid.Uint64Range(1, 400)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 100}).Draw(t, "times") {
					key, value := keys.Draw(t, "key"), limit+rapid.Int64Range(0, 9).Draw(t, "value")
					got.set(key, value, stale)
					want[key] = value
				}
			},
			"remove": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				got.remove(key)
				delete(want, key)
			},
			"age": func(t *rapid.T) { limit += rapid.Int64Range(1, 20).Draw(t, "by") },
			"": func(t *rapid.T) {
				for key, value := range want {
					if v := got.get(key); v != value && !(stale(value) && v == 0) {
						t.Fatalf("key %d has value %d, want %d", key, v, value)
					}
				}
			},
		})
	})
}

// The distributions are what they are called; all numbers are whole.
func TestDistributions(t *testing.T) {
	const draws = 200_000
	r := newRandom(1, 1)
	for _, test := range []struct {
		delay          Delay
		mean, variance float64
	}{
		{Constant(5000), 5000, 0},
		{Uniform(1000, 3000), 2000, 2000 * 2000 / 12},
		{Exponential(0, 1000), 1000, 1000 * 1000},
		{Exponential(4000, 5000), 5000, 1000 * 1000},
		{List(1000, 3000), 2000, 1000 * 1000},
	} {
		s := sampler{Delay: test.delay}
		sum, squares := 0.0, 0.0
		for range draws {
			v := float64(s.draw(&r))
			sum += v
			squares += v * v
		}
		mean := sum / draws
		variance := squares/draws - mean*mean
		if mean < 0.99*test.mean || mean > 1.01*test.mean || variance < 0.97*test.variance || variance > 1.03*test.variance+1 {
			t.Errorf("%v: mean %.0f, variance %.0f, want %.0f and %.0f", test.delay, mean, variance, test.mean, test.variance)
		}
		if got := float64(test.delay.Mean()); got != test.mean {
			t.Errorf("%v says that its mean is %.0f", test.delay, got)
		}
	}
}

// Probabilities of 0 and 1 are exactly that.
func TestChance(t *testing.T) {
	r := newRandom(1, 1)
	happened := 0
	for range 100_000 {
		if r.chance(makeProbability(0)) || !r.chance(makeProbability(1)) {
			t.Fatal("something impossible happened, or something certain did not")
		}
		if r.chance(makeProbability(0.25)) {
			happened++
		}
	}
	if happened < 24_000 || happened > 26_000 {
		t.Errorf("happened %d times of 100,000 at a probability of 0.25", happened)
	}
}

// Every value lies in its bucket, and no bucket is wider than a sixteenth of
// what it holds.
func TestHistogramBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.IntRange(0, 60).Draw(t, "digits")
		v := process.Duration(rapid.Int64Range(0, 1<<digits).Draw(t, "value"))
		b := bucket(v)
		if lo, hi := floor(b), floor(b+1); v < lo || v >= hi || (hi-lo)*16 > max(16, lo) {
			t.Fatalf("%d lies in bucket %d, which is %d to %d", v, b, lo, hi)
		}
	})
}

func TestSummary(t *testing.T) {
	var h histogram
	for v := process.Duration(1); v <= 100; v++ {
		h.add(10 * v)
	}
	s := h.summary(10)
	if s.Count != 100 || s.Mean != 50.5 || s.Min != 1 || s.Max != 100 {
		t.Errorf("summary of 1 to 100 is %+v", s)
	}
	if s.Median < 49 || s.Median > 52 || s.P99 < 97 || s.P99 > 100 {
		t.Errorf("median %v and 99th percentile %v of 1 to 100", s.Median, s.P99)
	}
	// Values that lie close together, in one bucket: the 99th percentile is not
	// below the mean.
	h = histogram{}
	for v := process.Duration(980); v <= 1020; v++ {
		h.add(v)
	}
	s = h.summary(1)
	if s.Median < 990 || s.Median > 1010 || s.P99 < 1010 || s.P99 > 1020 {
		t.Errorf("median %v and 99th percentile %v of 980 to 1020", s.Median, s.P99)
	}
}
