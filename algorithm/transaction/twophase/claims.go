package twophase

import "github.com/conclave-io/conclave/process"

const calm = "all processes vote yes at the same moment; no process crashes and no message is lost"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination},
		{Property: process.NonBlocking, Fails: true, When: "a PREPARED process waits until a process that knows the decision is back"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm + "; without ACK", Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm + "; with ACK", Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: process.Constant("3", 3)},
		{Metric: process.LogWrites, Regime: process.AllStart, Mode: presumedAbort, When: calm, Exact: writes("2(N-1)+2", 2)},
		{Metric: process.LogWrites, Regime: process.AllStart, Mode: presumedNothing, When: calm, Exact: writes("2(N-1)+3", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process that has decided ignores other messages"},
		{Fault: process.Loss, How: "T3a, T5a and T6"},
		{Fault: process.Duplication, How: "votes and ACKs are counted once for each process"},
		{Fault: process.CrashAny, How: "votes and decisions are in the log; others may have to wait for the restart"},
		{Fault: process.AmnesiaRestart, How: "T7"},
		{Fault: process.Slowness, How: "a late vote is a no"},
	},
}

// writes is 2 for each participant and the given number for the coordinator.
func writes(text string, own int) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 { return float64(2*(p.N-1) + own) }}
}
