package cristian

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "from the server, once a correction is worked in; the server is up, and nothing is lost", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "samples=1; no answer exceeds the limit",
			Exact: &process.Formula{Text: "2(N-1)", Eval: func(p process.Params) float64 { return float64(2 * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an answer names its question"},
		{Fault: process.Duplication, How: "an answer counts once"},
		{Fault: process.CrashBystander, How: "clients do not know of each other"},
		{Fault: process.AmnesiaRestart, How: "a client asks anew; a server keeps nothing"},
	},
}

// bound is half of what delays may differ by, and what the clocks drift apart and
// corrections are on their way meanwhile.
var bound = &process.Formula{
	Text: "(max-min)/2 + 4 drift interval + 6 slew max",
	Eval: func(p process.Params) float64 {
		return (p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + 6*p.Slew*p.MaxDelay
	},
}
