package raymond

import "github.com/conclave-io/conclave/process"

const (
	several = "N >= 2; over whole rounds, in which everyone enters once"
	apart   = "the requester is dist edges away from the token"
	onTree  = "any requester on any tree"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "a later request that is nearer to the token is served first"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: process.OfN("4(N-1)/N", func(n float64) float64 { return 4 * (n - 1) / n })},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.ClientDelay, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.ClientDelay, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several + "; the mean", Exact: process.OfN("2(N-1)/N", func(n float64) float64 { return 2 * (n - 1) / n })},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.OfN("N/2(N-1)", func(n float64) float64 { return n / (2 * (n - 1)) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REQ that overtakes the token waits in the queue"},
	},
}

var thereAndBack = &process.Formula{Text: "2 dist", Eval: func(p process.Params) float64 { return 2 * float64(p.Distance) }}

// longest is for the ends of a line.
var longest = process.PerOther("2(N-1)", 2)

var none = process.Constant("0", 0)
