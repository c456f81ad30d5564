package ntp

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "to the root's clock, h hops away, once each server on the path has completed a correction that it requested when the clock above was right; no message is lost, and no server on the path crashes", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "burst=8; all servers above have the time",
			Exact: process.PerOther("16(N-1)", 16)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REPLY names its REQUEST"},
		{Fault: process.Duplication, How: "a REPLY counts once"},
	},
}

// bound is Cristian's bound, for each hop. The error of a measurement is at most half
// of the difference of delays. Clocks drift apart by 2 drift until the next measurement
// counts. A clock still applies the previous correction during a burst, which takes two
// delays for each exchange. The clock above is off by at most the bound for its own
// distance.
//
// That holds for the clock above only once it is right. A clock that asks while the
// clock above is still being corrected inherits the missing part, even if the clock
// above is right when the answer is applied.
var bound = &process.Formula{
	Text: "h ((max-min)/2 + 4 drift interval + (2 burst - 1) slew max)",
	Eval: func(p process.Params) float64 {
		return float64(p.Distance) * ((p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay)
	},
}
