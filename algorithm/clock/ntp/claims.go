package ntp

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockBound, When: "from the root, h hops away, once all corrections on the way are worked in; nothing is lost, and nobody on the way crashes", Bound: bound},
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

// bound is what Cristian's is, for each hop. A burst takes up to 16 delays.
var bound = &process.Formula{
	Text: "h ((max-min)/2 + 4 drift interval + 22 slew max)",
	Eval: func(p process.Params) float64 {
		return float64(p.Distance) * ((p.MaxDelay-p.MinDelay)/2 + 4*p.Drift*p.Interval + 22*p.Slew*p.MaxDelay)
	},
}
