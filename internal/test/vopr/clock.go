package vopr

const million = 1_000_000

// clock is a monotonic clock. It runs while its machine is paused, and starts again at another
// reading when the machine restarts. Its drift is in parts per million.
type clock struct {
	since, base int64
	drift       int64
}

// read returns the reading of the clock at a time of the world.
func (c *clock) read(now int64) int64 {
	passed := now - c.since
	return c.base + passed + passed*c.drift/million
}

// when returns the first time of the world at which the clock has a reading. It assumes that the
// drift does not change.
func (c *clock) when(reading int64) int64 {
	left := reading - c.base
	at := c.since + left*million/(million+c.drift)
	for c.read(at) < reading {
		at++
	}
	return at
}

// real returns the duration in the world that corresponds to a duration on the clock.
func (c *clock) real(length int64) int64 { return length * million / (million + c.drift) }

// turn changes the drift of the clock from now on.
func (c *clock) turn(now, drift int64) { c.base, c.since, c.drift = c.read(now), now, drift }

// begin sets a random reading for a machine that restarts. The reading may be lower than an earlier
// one, because readings are valid only until the machine restarts.
func (c *clock) begin(now int64, luck uint64) {
	c.since, c.base = now, int64(luck*0x9e3779b97f4a7c15>>14)
}
