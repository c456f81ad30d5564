package heartbeat

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed(false)},
		{Property: process.EventualAccuracy, Within: noticed(false), When: "from some time on delays have some bound, and no message is lost"},
		{Property: process.StrongAccuracy, Fails: true, When: "a delay longer than timeout-P looks like a crash"},
	},
	Costs: costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an overtaken ALIVE proves nothing (R2a)"},
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.Loss, How: "timeout > 2P: one loss has no effect; several in a row cause a wrong suspicion, which the next ALIVE withdraws"},
		{Fault: process.Slowness, How: "wrong suspicions are withdrawn, and become rarer (R2c)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

var reliableClaims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed(true)},
		{Property: process.StrongAccuracy},
	},
	Costs: costs,
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "a duplicate proves nothing (R2a)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

const byDefault = "every message takes D; P = 4D, timeout = 3P+D = 13D"

var costs = []process.Cost{
	{Metric: process.MessagesPerPeriod, Regime: process.Steady, Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	{Metric: process.DetectionTime, Regime: process.Steady, When: byDefault,
		Lo: process.Constant("timeout+D-P = 10", 10), Hi: process.Constant("timeout+D = 14", 14)},
}

// noticed is the time after the last fault in which every process learns which others
// are up, if delays are bounded by D. A crash is noticed when the timeout expires, and
// a wrong suspicion is withdrawn at the next ALIVE.
func noticed(reliable bool) func(c *process.Config) process.Duration {
	return func(c *process.Config) process.Duration {
		m := newMachine(0, c, reliable).(*machine)
		return m.timeout + m.period + 2*c.D()
	}
}
