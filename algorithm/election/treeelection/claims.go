package treeelection

import "github.com/conclave-io/conclave/process"

const (
	several = "N >= 2"
	onTree  = several + ", on any tree; until the last process knows the leader"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several, Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: onTree,
			Hi: process.OfN("2N-1", func(n float64) float64 { return 2*n - 1 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: onTree,
			Hi: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a TOK that overtakes a WAKEUP counts as well"},
		{Fault: process.Duplication, How: "a neighbour is noted once"},
	},
}
