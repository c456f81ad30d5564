package vopr

const million = 1_000_000

// clock is one that nobody sets: it goes on while its machine stands still, begins
// anew when that starts again, and goes faster or slower than time by so many parts
// per million.
type clock struct {
	since, base int64
	drift       int64
}

// read returns what the clock shows at a moment.
func (c *clock) read(now int64) int64 {
	passed := now - c.since
	return c.base + passed + passed*c.drift/million
}

// when returns the first moment at which the clock shows a reading, as long as its
// drift stays as it is.
func (c *clock) when(reading int64) int64 {
	left := reading - c.base
	at := c.since + left*million/(million+c.drift)
	for c.read(at) < reading {
		at++
	}
	return at
}

// real returns how long a length of the clock takes.
func (c *clock) real(length int64) int64 { return length * million / (million + c.drift) }

// turn lets the clock go at another speed from now on.
func (c *clock) turn(now, drift int64) { c.base, c.since, c.drift = c.read(now), now, drift }

// begin lets the clock of a machine that starts again show anything, also what is long
// past: no reading means anything beyond the life of its machine.
func (c *clock) begin(now int64, luck uint64) {
	c.since, c.base = now, int64(luck*0x9e3779b97f4a7c15>>14)
}
