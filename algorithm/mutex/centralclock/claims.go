package centralclock

import "github.com/conclave-io/conclave/process"

const (
	notClock = "the client is not the clock; the clock is one of the N"
	quiet    = "; the clock does not ask for itself"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.Progress, When: "the clock does not crash"},
		{Property: process.FencesGrow},
		{Property: process.OrderTimestamp},
		{Property: process.OrderArrival, When: "of ASK at the clock"},
		{Property: process.OrderHappenedBefore, Fails: true,
			When: "two causally related requests may reach the clock in reverse order"},
		{Property: process.BoundedBypass, Since: process.SinceArrival, When: "counted from arrival at the clock",
			Bound: process.PerOther("N-1", 1)},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, When: notClock + quiet,
			Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: notClock, Exact: &process.Formula{
			Text: "4, or 2 if N = 2", Eval: func(p process.Params) float64 {
				if p.N == 2 {
					return 2
				}
				return 4
			}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, Exact: process.Constant("1", 1),
			When: notClock + "; N >= 3; a process that leaves has a new stamp and permissions before its next turn"},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "no rule depends on the order of messages"},
		{Fault: process.Duplication, How: "a request has a number, which STAMP and REPLY echo"},
		{Fault: process.CrashBystander, How: "R7, with a reliable detector"},
		{Fault: process.CrashWaiter, How: "R7, with a reliable detector"},
		{Fault: process.CrashHolder, How: "R7, with a reliable detector"},
	},
}
