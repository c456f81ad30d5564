package threephase

import "github.com/conclave-io/conclave/process"

const (
	calm = "all processes vote yes at the same moment; no process crashes and no message is lost"
	left = "at least one process never crashes"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination, When: left},
		{Property: process.NonBlocking, When: left},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: times},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm, Exact: times},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: process.Constant("5", 5)},
		{Metric: process.LogWrites, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "3(N-1)+2", Eval: func(p process.Params) float64 { return float64(3*(p.N-1) + 2) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a process that has answered a leader ignores earlier leaders"},
		{Fault: process.Duplication, How: "each process is counted once"},
		{Fault: process.CrashAny, When: left, How: "Q5, Q7 and Q8 leave out crashed processes"},
		{Fault: process.AmnesiaRestart, How: "a restarted process asks"},
		{Fault: process.Slowness, When: "the detector is right", How: "a late vote is a no"},
	},
}

var times = process.PerOther("5(N-1)", 5)
