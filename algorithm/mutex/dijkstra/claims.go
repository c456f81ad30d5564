package dijkstra

import "github.com/conclave-io/conclave/process"

const recovered = "no transient fault happened, or it is over and the ring has converged"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, When: recovered},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: process.PerOther("N-1", 1), When: recovered},
		{Property: process.Convergence, When: "K >= n(1+c), where at most c values are in a cache or on its way to it"},
		{Property: process.FencesGrow, Fails: true, When: "there are none: a fault may change any counter"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "entries follow the ring, not the order of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2; plus N for each tau that passes", Lo: process.Constant("1", 1)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Loss, How: "D6"},
		{Fault: process.Slowness, How: "no rule depends on time"},
	},
}
