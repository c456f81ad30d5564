// Package periods judges that a job which several machines start at the same time, once in each
// period, runs at most once in each.
package periods

import "github.com/conclave-io/conclave/internal/test/vopr/events"

const (
	ms = events.Millisecond
	// Length is the length of a period, in ns.
	Length = 60_000 * ms
	// AtLeast is how long the lock of the job stays closed after a grant, in ns, and Patience how long
	// its command asks for the lock. A command that starts late and waits as long as it may still
	// asks within AtLeast.
	AtLeast, Patience = 40_000 * ms, 10_000 * ms
	// Job is how long the job runs, in ns.
	Job = 200 * ms
	// Machines is the number of machines that start the job.
	Machines = 3
	// apart is how far apart the clocks of two machines are, in ns.
	apart = 1500 * ms
)

// Judge knows in which periods the job was asked for, and in which it ran.
type Judge struct {
	run   *events.Run
	asked map[int64]bool
	ran   map[int64]bool
}

// New returns the judge of a run.
func New(run *events.Run) *Judge {
	return &Judge{run, make(map[int64]bool), make(map[int64]bool)}
}

// Next returns the next period on the clock of a machine, and in how many ns it begins there.
func Next(now int64, machine int) (period, in int64) {
	local := now + int64(machine)*apart
	period = local/Length + 1
	return period, period*Length - local
}

// Asks records that a machine starts the command of a period.
func (j *Judge) Asks(period int64) {
	if !j.asked[period] {
		j.asked[period] = true
		j.run.Stats.Periods++
	}
}

// Runs records that the job of a period begins.
func (j *Judge) Runs(period int64) {
	if j.ran[period] {
		j.run.Violate("period", "the job runs a second time in period %d", period)
	}
	j.ran[period] = true
	j.run.Stats.JobRuns++
}
