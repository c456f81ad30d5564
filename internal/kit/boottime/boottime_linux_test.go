package boottime

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// machine has the three clocks of a simulated machine, in nanoseconds. A reading takes time.
type machine struct {
	monotonic, suspended, set int64
	reading                   int64 // how long one reading takes
	asked                     int   // how often the kernel was asked
}

func (m *machine) clock() *clock {
	return newClock(func() (int64, int64) {
		m.monotonic += m.reading
		return m.monotonic, m.monotonic + m.suspended + m.set
	}, func() int64 {
		m.asked++
		m.monotonic += m.reading
		return m.monotonic + m.suspended
	})
}

func (m *machine) truth() int64 { return m.monotonic + m.suspended }

// Whatever happens to the machine, the clock never goes back, is never ahead, and is late by at
// most the time that a measurement may take.
func TestClockOfAMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{reading: rapid.Int64Range(0, int64(narrow)/4).Draw(t, "reading"), monotonic: 1 << 40}
		c := m.clock()
		last := c.now()
		t.Repeat(map[string]func(*rapid.T){
			"time passes": func(t *rapid.T) { m.monotonic += rapid.Int64Range(0, int64(time.Hour)).Draw(t, "ns") },
			"a moment passes": func(t *rapid.T) {
				m.monotonic += rapid.Int64Range(0, int64(fresh)).Draw(t, "ns")
			},
			"suspended": func(t *rapid.T) {
				m.suspended += rapid.Int64Range(int64(3*tolerance), int64(time.Hour)).Draw(t, "ns")
			},
			"the wall clock is set": func(t *rapid.T) {
				m.set += rapid.Int64Range(-int64(time.Millisecond)/2, int64(time.Hour)).Draw(t, "ns")
			},
			"readings take another time": func(t *rapid.T) {
				m.reading = rapid.Int64Range(0, int64(narrow)/4).Draw(t, "reading")
			},
			"": func(t *rapid.T) {
				now := c.now()
				if now < last {
					t.Fatalf("the clock went back from %d to %d", last, now)
				}
				last = now
				if late := m.truth() - int64(now); late < 0 || late > int64(narrow) {
					t.Fatalf("the clock is late by %v", time.Duration(late))
				}
			},
		})
	})
}

// Somebody sets the wall clock back by exactly the time of a suspension: no reading shows that,
// and the clock counts the suspension when its offset is no longer fresh.
func TestSuspensionThatTheWallClockHides(t *testing.T) {
	m := &machine{reading: 10}
	c := m.clock()
	m.suspended += int64(time.Minute)
	m.set -= int64(time.Minute)
	if late := m.truth() - int64(c.now()); late < int64(time.Minute) {
		t.Fatalf("the clock is late by %v: the test hides nothing", time.Duration(late))
	}
	m.monotonic += int64(fresh)
	if late := m.truth() - int64(c.now()); late > int64(narrow) {
		t.Fatalf("the clock is late by %v", time.Duration(late))
	}
}

// Another goroutine reads the clock between the two readings of a measurement.
func TestReadingDuringAMeasurement(t *testing.T) {
	m := &machine{reading: 10}
	c := m.clock()
	system := c.system
	var other Time
	c.system = func() int64 {
		now := system()
		c.system = system
		m.monotonic += int64(narrow) / 2
		other = Time(m.monotonic + c.last.Load().boot)
		return now
	}
	m.monotonic += int64(fresh)
	if now := c.now(); now < other {
		t.Fatalf("the clock went back from %d to %d", other, now)
	}
}

// Where each reading takes longer than the error that is aimed at, the clock works all the same.
func TestSlowClocks(t *testing.T) {
	m := &machine{reading: int64(time.Millisecond)}
	c := m.clock()
	now := c.now()
	if late := m.truth() - int64(now); late < 0 || late > 3*int64(time.Millisecond) {
		t.Fatalf("the clock is late by %v", time.Duration(late))
	}
}

func TestKernelIsSeldomAsked(t *testing.T) {
	m := &machine{reading: 10}
	c := m.clock()
	for range 1000 {
		c.now()
	}
	if m.asked != 1 {
		t.Errorf("1,000 readings asked the kernel %d times, expected once", m.asked)
	}
}

// The real clock agrees with the kernel's, also when goroutines read it together.
func TestClockOfTheKernel(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var last Time
			for range 20_000 {
				before := readSystem()
				now := Now()
				after := readSystem()
				if now < last {
					t.Errorf("the clock went back from %d to %d", last, now)
				}
				if int64(now) < before-int64(narrow) || int64(now) > after {
					t.Errorf("the clock shows %d, the kernel %d before and %d after", now, before, after)
				}
				last = now
			}
		})
	}
	all.Wait()
}

func BenchmarkNow(b *testing.B) {
	for b.Loop() {
		Now()
	}
}
