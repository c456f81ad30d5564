package berkeley

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "of any two, once their corrections are worked in; nothing is lost", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "all answer within the limit",
			Exact: &process.Formula{Text: "3(N-1)", Eval: func(p process.Params) float64 { return float64(3 * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "an answer and an ADJUST count once"},
		{Fault: process.CrashBystander, How: "its answer is not waited for; without a detector, the limit ends the round"},
		{Fault: process.CrashSpecial, How: "R6, with a reliable detector and an election"},
	},
}

// bound is what two clocks are read wrongly by, and what they drift apart and
// corrections are on their way meanwhile.
var bound = &process.Formula{
	Text: "max-min + 4 drift interval + 8 slew max",
	Eval: func(p process.Params) float64 {
		return p.MaxDelay - p.MinDelay + 4*p.Drift*p.Interval + 8*p.Slew*p.MaxDelay
	},
}
