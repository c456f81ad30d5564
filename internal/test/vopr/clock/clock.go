// Package clock is a clock of a simulated machine.
package clock

// Million is the number of parts in which a drift is counted.
const Million = 1_000_000

// Clock is a monotonic clock. It runs while its machine is paused, and starts again at another
// reading when the machine restarts. Its drift is in parts per million.
type Clock struct {
	Since, Base int64
	drift       int64
}

// Read returns the reading of the clock at a time of the world.
func (c *Clock) Read(now int64) int64 {
	passed := now - c.Since
	return c.Base + passed + passed*c.drift/Million
}

// When returns the first time of the world at which the clock has a reading. It assumes that the
// drift does not change.
func (c *Clock) When(reading int64) int64 {
	left := reading - c.Base
	at := c.Since + left*Million/(Million+c.drift)
	for c.Read(at) < reading {
		at++
	}
	return at
}

// Real returns the duration in the world that corresponds to a duration on the clock.
func (c *Clock) Real(length int64) int64 { return length * Million / (Million + c.drift) }

// Turn changes the drift of the clock from now on.
func (c *Clock) Turn(now, drift int64) { c.Base, c.Since, c.drift = c.Read(now), now, drift }

// Begin sets a random reading for a machine that restarts. The reading may be lower than an earlier
// one, because readings are valid only until the machine restarts.
func (c *Clock) Begin(now int64, luck uint64) {
	c.Since, c.Base = now, int64(luck*0x9e3779b97f4a7c15>>14)
}
