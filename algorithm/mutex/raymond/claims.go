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
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: formula("4(N-1)/N",
			func(p process.Params) float64 { return 4 * float64(p.N-1) / float64(p.N) })},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.ClientDelay, Regime: process.Idle, When: apart, Exact: thereAndBack},
		{Metric: process.ClientDelay, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several + "; the mean", Exact: formula("2(N-1)/N",
			func(p process.Params) float64 { return 2 * float64(p.N-1) / float64(p.N) })},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: formula("N/2(N-1)",
			func(p process.Params) float64 { return float64(p.N) / (2 * float64(p.N-1)) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REQ that overtakes the token waits in the queue"},
	},
}

var thereAndBack = formula("2 dist", func(p process.Params) float64 { return 2 * float64(p.Distance) })

// longest is for the ends of a line.
var longest = formula("2(N-1)", func(p process.Params) float64 { return 2 * float64(p.N-1) })

var none = formula("0", func(process.Params) float64 { return 0 })

func formula(text string, eval func(process.Params) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: eval}
}
