package central

import "github.com/conclave-io/conclave/process"

const notCoordinator = "the client is not the coordinator, and N >= 2"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.FencesGrow},
		{Property: process.Progress, Mode: silent},
		{Property: process.Progress, Mode: denyQueue},
		{Property: process.Progress, Mode: denyPoll, When: "with probability 1: other clients may overtake one that polls at unlucky moments"},
		{Property: process.OrderArrival, Mode: silent, When: "within a term"},
		{Property: process.OrderArrival, Mode: denyQueue, When: "within a term"},
		{Property: process.OrderHappenedBefore, Fails: true,
			When: "two causally related requests may reach the coordinator in reverse order"},
		{Property: process.BoundedBypass, Mode: silent, Bound: othersOnce, Since: process.SinceArrival, When: "counted from arrival at the coordinator"},
		{Property: process.BoundedBypass, Mode: denyQueue, Bound: othersOnce, Since: process.SinceArrival, When: "counted from arrival at the coordinator"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: silent, When: notCoordinator, Exact: process.Constant("3", 3),
			Said: []process.Figure{{Document: "[D0]", Text: "3"}, {Document: "[D3]", Text: "3"}, {Document: "[D4]", Text: "3"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: denyQueue, When: notCoordinator, Exact: process.Constant("3", 3)},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, Mode: denyQueue,
			When: notCoordinator + "; 3 if there is no other client (N = 2)", Exact: ifTaken,
			Said: []process.Figure{{Document: "[D4]", Text: "3", Wrong: "its own pseudo-code also sends DENIED to every queued client"}}},
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Mode: denyPoll, When: notCoordinator, Exact: process.Constant("3", 3)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Mode: denyPoll, When: notCoordinator + "; p REQUESTs were sent",
			Exact: &process.Formula{Text: "2p+1", Eval: func(p process.Params) float64 { return float64(2*p.Polls + 1) }}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: notCoordinator, Exact: process.Constant("2", 2),
			Said: []process.Figure{{Document: "[D0]", Text: "2"}, {Document: "[D3]", Text: "2"}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: silent, When: notCoordinator, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: denyQueue, When: notCoordinator, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, Mode: denyPoll,
			When: notCoordinator + "; plus the rest of the polling interval", Lo: process.Constant("2", 2)},
		{Metric: process.Throughput, Regime: process.Saturated, Mode: silent, When: notCoordinator, Exact: process.Constant("1/2", 0.5)},
		{Metric: process.Throughput, Regime: process.Saturated, Mode: denyQueue, When: notCoordinator, Exact: process.Constant("1/2", 0.5)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "request numbers"},
		{Fault: process.Duplication, How: "request numbers; a duplicate GRANTED is recognised"},
		{Fault: process.CrashBystander, How: "no process waits for it"},
		{Fault: process.CrashWaiter, How: "R8, with a reliable detector"},
		{Fault: process.CrashHolder, How: "R8, with a reliable detector"},
		{Fault: process.CrashSpecial, How: "R9, with a reliable detector and an election below"},
		{Fault: process.AmnesiaRestart, How: "a restarted process starts an election; the winner's takeover restores its state"},
	},
}

// othersOnce is the bound of a FIFO queue that holds each process once.
var othersOnce = process.PerOther("N-1", 1)

// ifTaken includes the DENIED that a client gets when it is queued behind another.
var ifTaken = &process.Formula{Text: "4", Eval: func(p process.Params) float64 {
	if p.N == 2 {
		return 3
	}
	return 4
}}
