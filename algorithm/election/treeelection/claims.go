package treeelection

import "github.com/conclave-io/conclave/process"

const (
	several = "N >= 2"
	onTree  = several + ", on any tree; until the last process knows the leader"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.LeaderAgreement},
		{Property: process.LeaderValidity},
		{Property: process.LeaderTermination},
		{Property: process.Quiescence},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: onTree,
			Hi: formula("2N-1", func(n float64) float64 { return 2*n - 1 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: onTree,
			Hi: formula("N", func(n float64) float64 { return n })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a TOK that overtakes a WAKEUP counts as well"},
		{Fault: process.Duplication, How: "a neighbour is noted once"},
	},
}

func formula(text string, eval func(n float64) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return eval(float64(p.N)) }}
}
