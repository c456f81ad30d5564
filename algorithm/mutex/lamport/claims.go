package lamport

import "github.com/conclave-io/conclave/process"

const several = "N >= 2"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress},
		{Property: process.FencesGrow},
		{Property: process.OrderTimestamp},
		{Property: process.OrderHappenedBefore},
		{Property: process.BoundedBypass, Bound: process.PerOther("2(N-1)", 2),
			When: "counted from the request; N-1 once every process has heard of it"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: answer, Exact: process.PerOther("3(N-1)", 3),
			Said: []process.Figure{
				{Document: "[D1]", Text: "3(N-1)", Wrong: "right for this algorithm, but printed for Ricart and Agrawala's"},
				{Document: "[D4]", Text: "3(n-1)"},
			}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: skip, Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: skip, Lo: process.PerOther("2(N-1)", 2), Hi: process.PerOther("3(N-1)", 3)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: several, Exact: process.Constant("2", 2),
			Said: []process.Figure{
				{Document: "[D1]", Text: "2(N-1)", Wrong: "counts the messages one after another; N-1 of them travel at the same time"},
			}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D4]", Text: "maximal message transmission time"}}},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the times on a link grow, so a duplicate is recognised"},
		{Fault: process.CrashAny, How: "R7, with a reliable detector"},
	},
}
