package ricartagrawala

import "github.com/conclave-io/conclave/process"

const (
	several  = "N >= 2"
	inTurn   = "all enter in turn, which costs most"
	noCrash  = "nobody has crashed"
	oneByOne = "counts one message after another; N-1 of them travel at the same time"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress, Mode: fresh},
		{Property: process.Progress, Mode: keep, When: noCrash},
		{Property: process.FencesGrow},
		{Property: process.OrderTimestamp, Mode: fresh},
		{Property: process.OrderHappenedBefore, Mode: fresh},
		{Property: process.BoundedBypass, Mode: fresh, Bound: process.PerOther("2(N-1)", 2),
			When: "counted from the request; N-1 once everybody has heard of it"},
		{Property: process.OrderTimestamp, Mode: keep, Fails: true,
			When: "who has all permissions enters again before it hears of an older request"},
		{Property: process.OrderHappenedBefore, Mode: keep, Fails: true,
			When: "who has all permissions enters again before it hears of an older request"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: fresh, Exact: process.PerOther("2(N-1)", 2),
			Said: []process.Figure{
				{Document: "[D0]", Text: "2(N-1)"},
				{Document: "[D1]", Text: "3(N-1)", Wrong: "its own pseudo-code needs 2(N-1): releasing is answering the queued requests; 3(N-1) is Lamport's algorithm"},
				{Document: "[D4]", Text: "2(n-1)"},
			}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: keep, When: inTurn, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: keep, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: keep,
			When: "the mean if one enters at a time, drawn at random",
			Lo:   process.Constant("0", 0), Hi: process.PerOther("2(N-1)", 2), Mean: process.PerOther("N-1", 1)},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: fresh, When: several, Exact: process.Constant("2", 2),
			Said: []process.Figure{
				{Document: "[D0]", Text: "2(N-1)", Wrong: oneByOne},
				{Document: "[D1]", Text: "2(N-1)", Wrong: oneByOne},
			}},
		{Metric: process.ClientDelay, Regime: process.Idle, Mode: keep, When: several + "; " + inTurn, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D4]", Text: "maximal message transmission time"}}},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "no rule depends on the order of messages"},
		{Fault: process.Duplication, How: "a REPLY echoes the number of its request"},
		{Fault: process.CrashAny, Mode: fresh, How: "R5, with a reliable detector"},
	},
}
