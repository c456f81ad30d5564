package neilsenmizuno

import "github.com/conclave-io/conclave/process"

const (
	several = "N >= 2; over whole rounds, in which everyone enters once"
	apart   = "the requester is dist edges away from the token; none if it is here"
	onTree  = "any requester on any tree"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.OrderHappenedBefore, Fails: true, When: "the token goes past the tree, and the process that it reaches asks again on a shorter path"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Lo: walk, Hi: wander},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: apart, Exact: thereAndHere},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.ClientDelay, Regime: process.Idle, When: apart, Exact: thereAndHere},
		{Metric: process.ClientDelay, Regime: process.Idle, When: onTree, Lo: none, Hi: longest},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: one},
		{Metric: process.Throughput, Regime: process.Saturated, When: "N >= 2", Exact: one},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an edge carries one REQ at a time, and a REQ that overtakes the token waits for it"},
	},
}

var none = process.Constant("0", 0)

var one = process.Constant("1", 1)

var thereAndHere = &process.Formula{Text: "dist+1", Eval: func(p process.Params) float64 {
	if p.Distance == 0 {
		return 0
	}
	return float64(p.Distance) + 1
}}

// longest is for the ends of a line.
var longest = process.PerProcess("N", 1)

// walk is a round in the order of a walk round the tree, which crosses each edge twice.
var walk = process.OfN("3-2/N", func(n float64) float64 { return 3 - 2/n })

// wander is a round in the worst order on a line: each edge is crossed, in both
// directions, as often as there are processes on its shorter side.
var wander = process.OfN("N/2+1", func(n float64) float64 { return n/2 + 1 })
