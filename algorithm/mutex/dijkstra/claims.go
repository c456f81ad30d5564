package dijkstra

import "github.com/conclave-io/conclave/process"

const recovered = "no transient fault happened, or it is over and the ring has converged"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion, When: recovered},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: &process.Formula{Text: "N-1", Eval: func(p process.Params) float64 { return float64(p.N - 1) }}, When: recovered},
		{Property: process.Convergence, When: "K >= n(1+c), where at most c values are in a cache or on its way to it"},
		{Property: process.FencesGrow, Fails: true, When: "there are none: a fault may change any counter"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "entries follow the ring, not the order of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2; plus N for each tau that passes", Lo: constant("1", 1)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Loss, How: "D6"},
		{Fault: process.Slowness, How: "no rule depends on time"},
	},
}

func constant(text string, value float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(process.Params) float64 { return value }}
}
