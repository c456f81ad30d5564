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
			Bound: &process.Formula{Text: "N-1", Eval: func(p process.Params) float64 { return float64(p.N - 1) }}},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, When: notClock + quiet,
			Exact: &process.Formula{Text: "2(N-1)", Eval: func(p process.Params) float64 { return float64(2 * (p.N - 1)) }}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: notClock, Exact: &process.Formula{
			Text: "4, or 2 if N = 2", Eval: func(p process.Params) float64 {
				if p.N == 2 {
					return 2
				}
				return 4
			}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, Exact: constant("1", 1),
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

func constant(text string, value float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(process.Params) float64 { return value }}
}
