package tokenring

import "github.com/conclave-io/conclave/process"

const (
	several   = "N >= 2"
	noRest    = "N >= 2 and delta = 0"
	fullRound = "a request just after the token has left waits for a full round of N deliveries"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.OneToken, When: "in each term; a TOKEN that is sent again because no ACK came is the same token"},
		{Property: process.FencesGrow},
		{Property: process.Progress},
		{Property: process.BoundedBypass, Bound: others, When: "no takeover begins during the wait"},
		{Property: process.OrderHappenedBefore, Fails: true, When: "entries follow the ring, not the order of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1),
			Said: []process.Figure{{Document: "[D0]", Text: "1..."}, {Document: "[D1]", Text: "1 to N"}, {Document: "[D3]", Text: "1 to ∞"},
				{Document: "[D4]", Text: "1 to n-1", Wrong: "0 if the token is here, and N deliveries if it has just left"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, When: "no bound: the token moves even if no process asks", Lo: process.Constant("0", 0),
			Said: []process.Figure{{Document: "[D0]", Text: "1..."}, {Document: "[D3]", Text: "1 to ∞"},
				{Document: "[D1]", Text: "1 to N", Wrong: "leaves out the rounds in which no process enters"}}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: noRest + "; the mean is over requests at random times",
			Lo: process.Constant("0", 0), Hi: all, Mean: half,
			Said: []process.Figure{
				{Document: "[D0]", Text: "0 ... N-1", Wrong: fullRound},
				{Document: "[D1]", Text: "0 to N-1", Wrong: fullRound},
				{Document: "[D3]", Text: "0 to (n-1)", Wrong: fullRound}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
		{Metric: process.SyncDelay, Regime: process.AnyLoad, When: noRest + "; N if only the process that left asks again",
			Lo: process.Constant("1", 1), Hi: all},
		{Metric: process.Throughput, Regime: process.Saturated, When: several, Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "hop numbers"},
		{Fault: process.Duplication, How: "hop numbers: the second copy is destroyed"},
		{Fault: process.CrashBystander, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.CrashWaiter, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.CrashHolder, How: "R7 and the takeover, with a reliable detector and an election below"},
		{Fault: process.CrashSpecial, How: "R7 and the takeover, with a reliable detector and an election below"},
		{Fault: process.CrashAny, How: "R6b or R7, with a reliable detector and an election below"},
		{Fault: process.AmnesiaRestart, How: "R8: a restarted process calls an election; the winner's takeover restores its state"},
	},
}

var all = process.PerProcess("N", 1)

var half = process.PerProcess("N/2", 0.5)

var others = process.PerOther("N-1", 1)
