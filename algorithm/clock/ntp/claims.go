package ntp

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "from the root, h hops away, once all on the way have worked in a correction that they asked for when the clock above was right; nothing is lost, and nobody on the way crashes", Bound: bound},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "burst=8; everybody above has the time",
			Exact: &process.Formula{Text: "16(N-1)", Eval: func(p process.Params) float64 { return float64(16 * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REPLY names its REQUEST"},
		{Fault: process.Duplication, How: "a REPLY counts once"},
	},
}

// bound is what Cristian's is, for each hop: a measurement is wrong by half of what
// delays may differ by, clocks drift apart by 2 drift until the next one counts, and
// a clock goes on with the correction before during a burst, which takes two delays
// for each exchange. The clock above is off by the bound of its own distance at most.
//
// That holds for the clock above only once it is right. A clock that asks while the
// one above is still on its way to the right time takes over what that lacks, whether
// or not it is there when the answer is worked in.
var bound = &process.Formula{
	Text: "h ((max-min)/2 + 4 drift interval + (2 burst - 1) slew max)",
	Eval: func(p process.Params) float64 {
		return float64(p.Distance) * ((p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + float64(2*p.Exchanges-1)*p.Slew*p.MaxDelay)
	},
}
