package cristian

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "from the server, once a correction is worked in; the server is up, nothing is lost, and no answer exceeds the limit", Bound: bound},
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

// bound is how wrong a measurement can be, which is half of what delays may differ
// by, and what becomes of it until the next correction is made.
//
// Two clocks drift apart by 2 drift of the time. A measurement may be as old as an
// interval and the exchanges of a round when the next one counts; a round is shorter
// than an interval, so 2 intervals are enough.
//
// While a client asks, it goes on working in the correction before. The estimate is
// for the middle of a wait; if the first of them is the best, that is 2 max for each
// other exchange, and half of its own wait, before the correction is made.
//
// A correction that is being worked in brings the clock from an error within the
// bound to another, and no further.
var bound = &process.Formula{
	Text: "(max-min)/2 + 4 drift interval + (2 samples - 1) slew max",
	Eval: func(p process.Params) float64 {
		return (p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay
	},
}
