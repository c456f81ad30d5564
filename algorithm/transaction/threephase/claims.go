package threephase

import "github.com/conclave-io/conclave/process"

const (
	calm = "all vote yes at the same moment, nothing fails"
	left = "somebody never crashes"
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
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: &process.Formula{
			Text: "5", Eval: func(process.Params) float64 { return 5 }}},
		{Metric: process.LogWrites, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "3(N-1)+2", Eval: func(p process.Params) float64 { return float64(3*(p.N-1) + 2) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "whoever has answered a leader listens to no earlier one"},
		{Fault: process.Duplication, How: "answers are counted by who gave them"},
		{Fault: process.CrashAny, When: left, How: "Q5, Q7 and Q8 leave out who has crashed"},
		{Fault: process.AmnesiaRestart, How: "whoever comes back asks"},
		{Fault: process.Slowness, When: "the detector is right", How: "a vote that is late is a no"},
	},
}

var times = &process.Formula{Text: "5(N-1)", Eval: func(p process.Params) float64 { return float64(5 * (p.N - 1)) }}
