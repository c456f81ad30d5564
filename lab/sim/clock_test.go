package sim

import (
	"math/rand/v2"
	"testing"

	"github.com/conclave-io/conclave/process"
)

const second = process.Second

func TestClockDrifts(t *testing.T) {
	c := clock{base: 5, drift: 100}
	if got, want := c.at(10*second), 5+10*second+10*second/10_000; got != want {
		t.Errorf("after 10 s a clock that is fast by 100 ppm shows %d, want %d", got, want)
	}
}

// corrected is a clock of a world that is corrected once, at time 0.
func corrected(by process.Duration, drift int) (*World, *clock) {
	w := &World{clocks: []clock{{drift: drift}}}
	w.adjust(0, by)
	return w, &w.clocks[0]
}

func TestCorrectionIsWorkedIn(t *testing.T) {
	for _, by := range []process.Duration{second, -second} {
		w, c := corrected(by, 0)
		if c.at(0) != 0 {
			t.Errorf("the clock jumps by %d", c.at(0))
		}
		w.now = 50 * second
		if got, want := w.Clock(0), w.now+by/2; got != want || w.Synchronized(0) {
			t.Errorf("half way it shows %d and is synchronized: %v; want %d, false", got, w.Synchronized(0), want)
		}
		for _, w.now = range []process.Duration{100 * second, 300 * second} {
			if got, want := w.Clock(0), w.now+by; got != want || !w.Synchronized(0) {
				t.Errorf("at %d it shows %d and is synchronized: %v; want %d, true", w.now, got, w.Synchronized(0), want)
			}
		}
	}
}

// A second measurement includes the applied part of the first correction. So the
// remaining part must not be added to the second.
func TestCorrectionReplacesTheOneBefore(t *testing.T) {
	w, _ := corrected(second, 0)
	w.now = 50 * second // half of it is in
	w.adjust(0, second/2)
	w.now = 200 * second
	if got, want := w.Clock(0), w.now+second; got != want {
		t.Errorf("the clock shows %d, want %d", got, want)
	}
}

func TestClockNeverRunsBackwards(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w := &World{clocks: []clock{{}}}
	last := w.Clock(0)
	for range 10_000 {
		switch r.IntN(3) {
		case 0:
			w.adjust(0, process.Duration(r.Int64N(int64(2*second)))-second)
		case 1:
			w.drift(0, r.IntN(2*maxDrift+1)-maxDrift)
		}
		w.now += process.Duration(r.Int64N(int64(second)))
		if now := w.Clock(0); now < last {
			t.Fatalf("the clock goes from %d to %d", last, now)
		} else {
			last = now
		}
	}
}
