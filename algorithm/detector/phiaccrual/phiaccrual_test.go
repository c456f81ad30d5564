package phiaccrual

import (
	"math"
	"math/rand"
	"testing"

	"github.com/conclave-io/conclave/process"
	"github.com/conclave-io/conclave/process/processtest"
)

func TestConform(t *testing.T) { processtest.Conform(t, Spec) }

func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }

// beyond is the tail of the normal distribution.
func beyond(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// TestTailTable: each entry is the least that is enough.
func TestTailTable(t *testing.T) {
	for i, z := range tail {
		share := math.Pow(10, -float64(i+1))
		if got := beyond(float64(z) / tailUnit); got > share {
			t.Errorf("level %d: %v of the distribution lies beyond %d/1024", i+1, got, z)
		}
		if got := beyond(float64(z-1) / tailUnit); got <= share {
			t.Errorf("level %d: %d/1024 is not the least, %v lies beyond the one before", i+1, z, got)
		}
	}
}

func TestRoot(t *testing.T) {
	check := func(v uint64) {
		r := root(v)
		if r*r < v || r > 0 && (r-1)*(r-1) >= v {
			t.Errorf("the root of %d is %d", v, r)
		}
	}
	for v := range uint64(2000) {
		check(v)
	}
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		v := uint64(rng.Int63n(1 << 60))
		check(v)
		r := root(v)
		check(r * r)
		check(r*r + 1)
		check(r*r - 1)
	}
}

// TestWaitAgainstRealNumbers compares the integer arithmetic with real numbers for many
// kinds of windows. The error is within the bound in the package comment.
func TestWaitAgainstRealNumbers(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 5000 {
		w, n := window{}, 2+rng.Intn(100)
		for range n {
			w.add(uint64(rng.Int63n(1<<uint(1+rng.Intn(20)))), n)
		}
		level := 1 + rng.Intn(maxLevel)
		mean, deviation := realMoments(w.values)
		deviation = max(deviation, minDeviation)
		want := mean + realTail(level)*deviation
		bound := 2 + deviation/tailUnit + realTail(level) + 1.0/tailUnit
		if got := float64(w.reaches(level)); got < want-1e-6 || got > want+bound {
			t.Fatalf("level %d is reached after %v units, by real numbers after %v; window %v", level, got, want, w.values)
		}
	}
}

func realMoments(values []uint64) (mean, deviation float64) {
	for _, v := range values {
		mean += float64(v) / float64(len(values))
	}
	for _, v := range values {
		deviation += (float64(v) - mean) * (float64(v) - mean) / float64(len(values))
	}
	return mean, math.Sqrt(deviation)
}

// realTail is the inverse of beyond, by bisection.
func realTail(level int) float64 {
	lo, hi := 0.0, 12.0
	for range 100 {
		if mid := (lo + hi) / 2; beyond(mid) > math.Pow(10, -float64(level)) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// TestLargestWindow: nothing overflows.
func TestLargestWindow(t *testing.T) {
	w := window{}
	for i := range maxWindow {
		w.add(uint64(i%2)*maxSample, maxWindow)
	}
	mean, deviation := w.moments()
	if mean != (maxSample+1)/2 || deviation != (maxSample+1)/2 {
		t.Errorf("mean %d, deviation %d", mean, deviation)
	}
}

// TestLevelsAreShares draws intervals from a normal distribution, and counts how
// many of them are longer than a level grants: one in 10^phi.
func TestLevelsAreShares(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	w, late, rounds := window{}, 0, 200_000
	draw := func() uint64 { return uint64(math.Max(0, 20*unitsPerD+3*unitsPerD*rng.NormFloat64())) }
	for range maxWindow {
		w.add(draw(), maxWindow)
	}
	limit := w.reaches(2)
	for range rounds {
		if draw() > limit {
			late++
		}
	}
	if share := float64(late) / float64(rounds); share < 0.006 || share > 0.014 {
		t.Errorf("%v of the intervals are late at level 2, want about 0.01", share)
	}
}

func TestStepsDoNotAllocate(t *testing.T) {
	c := &process.Config{N: 100}
	m, fx := newMachine(0, c), &process.Effects{}
	msg := process.Message{Type: alive, From: 7, Value: 1}
	now := process.Duration(0)
	events := []process.Event{
		{Kind: process.Fire, Timer: beatTimer},
		{Kind: process.Deliver, Message: &msg},
		{Kind: process.Fire, Timer: checkTimer.For(7)},
	}
	step := func() {
		msg.Seq++
		now += 4 * c.D()
		for i := range events {
			events[i].Now = now
			fx.Begin(0, nil)
			m.Step(&events[i], fx)
		}
	}
	for range 100 { // fills the window
		step()
	}
	if allocs := testing.AllocsPerRun(1000, step); allocs != 0 {
		t.Errorf("a beat, an ALIVE and a suspicion allocate %v times", allocs)
	}
}
