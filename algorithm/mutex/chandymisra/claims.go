package chandymisra

import "github.com/conclave-io/conclave/process"

const (
	several = "N >= 2"
	inTurn  = "all enter in turn, which costs most"
	barges  = "a process that has all forks enters again before it hears of an earlier request"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress},
		{Property: process.FencesGrow},
		{Property: process.OrderHappenedBefore, Fails: true, When: barges},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: inTurn, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad,
			When: "the mean if one enters at a time, drawn at random",
			Lo:   process.Constant("0", 0), Hi: process.PerOther("2(N-1)", 2), Mean: process.PerOther("N-1", 1)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: several + "; " + inTurn, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a REQ that overtakes a FORK is answered after the entry"},
	},
}
