package cristian

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "to the server's clock, once a correction is complete; the server is up, no message is lost, and no answer exceeds the limit", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "samples=1; no answer exceeds the limit",
			Exact: process.PerOther("2(N-1)", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an answer names its question"},
		{Fault: process.Duplication, How: "an answer counts once"},
		{Fault: process.CrashBystander, How: "clients do not depend on each other"},
		{Fault: process.AmnesiaRestart, How: "a client asks again; a server keeps no state"},
	},
}

// bound is the error of a measurement, which is at most half of the difference of
// delays, and what happens to it until the next correction.
//
// Two clocks drift apart by 2 drift per unit of time. When the next measurement counts,
// the last one may be as old as an interval plus the exchanges of a round. A round is
// shorter than an interval, so 2 intervals are enough.
//
// While a client asks, its clock still applies the previous correction. The estimate is
// for the middle of a wait. If the first exchange is the best, that is 2 max for each
// other exchange, and half of its own wait, before the correction starts.
//
// While a correction is applied, the error of the clock stays between two errors that
// are within the bound.
var bound = &process.Formula{
	Text: "(max-min)/2 + 4 drift interval + (2 samples - 1) slew max",
	Eval: func(p process.Params) float64 {
		return (p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay
	},
}
