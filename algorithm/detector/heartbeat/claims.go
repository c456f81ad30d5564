package heartbeat

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.StrongCompleteness, Within: noticed(false)},
		{Property: process.EventualAccuracy, Within: noticed(false), When: "from some time on delays are bounded, by whatever bound, and nothing is lost"},
		{Property: process.StrongAccuracy, Fails: true, When: "a delay longer than timeout-P is taken for a crash"},
	},
	Costs: costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an overtaken ALIVE proves nothing (R2a)"},
		{Fault: process.Duplication, How: "a copy proves nothing (R2a)"},
		{Fault: process.Loss, How: "timeout > 2P: one loss is not noticed, more of them are a wrong suspicion, which the next ALIVE takes back"},
		{Fault: process.Slowness, How: "wrong suspicions are taken back, and become rarer (R2c)"},
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
		{Fault: process.Duplication, How: "a copy proves nothing (R2a)"},
		{Fault: process.CrashAny, How: "its purpose"},
		{Fault: process.AmnesiaRestart, How: "incarnation numbers (R2b)"},
	},
}

const byDefault = "every message takes D; P = 4D, timeout = 3P+D = 13D"

var costs = []process.Cost{
	{Metric: process.MessagesPerPeriod, Regime: process.Steady, Exact: &process.Formula{
		Text: "N(N-1)", Eval: func(p process.Params) float64 { return float64(p.N * (p.N - 1)) }}},
	{Metric: process.DetectionTime, Regime: process.Steady, When: byDefault,
		Lo: constant("timeout+D-P = 10", 10), Hi: constant("timeout+D = 14", 14)},
}

func constant(text string, value float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(process.Params) float64 { return value }}
}

// noticed is how long after the last fault everyone knows who is there and who is
// not, if delays are bounded by D: a crash is noticed when the timeout is over, and
// a wrong suspicion taken back at the next ALIVE.
func noticed(reliable bool) func(c *process.Config) process.Duration {
	return func(c *process.Config) process.Duration {
		m := newMachine(0, c, reliable).(*machine)
		return m.timeout + m.period + 2*c.D()
	}
}
