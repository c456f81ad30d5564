package globalstate

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ConsistentCut},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, When: "N(N-1) MARKER and N-1 PART, for each recording",
			Exact: process.OfN("(N+1)(N-1)", func(n float64) float64 { return (n + 1) * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on time"},
	},
}
