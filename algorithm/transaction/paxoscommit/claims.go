package paxoscommit

import "github.com/conclave-io/conclave/process"

const (
	calm     = "all vote yes at the same moment, nothing fails"
	majority = "a majority of the acceptors is up, and nobody disturbs a leader"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination, When: "nobody disturbs a leader"},
		{Property: process.NonBlocking, When: majority},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: messages},
		{Metric: process.MessageCount, Regime: process.AllStart, When: calm, Exact: messages},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + ", N >= 2", Exact: &process.Formula{
			Text: "4; 3 if f = 0 or N = 2", Eval: func(p process.Params) float64 { return float64(3 + min(p.F, p.N-2, 1)) }}},
		{Metric: process.LogWrites, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "2N+A", Eval: func(p process.Params) float64 { return float64(2*p.N + Acceptors(p.N, p.F)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a promise makes what comes from earlier ballots too late"},
		{Fault: process.Loss, How: "C5"},
		{Fault: process.Duplication, How: "answers are counted by who gave them"},
		{Fault: process.CrashAny, When: "a majority of the acceptors stays up", How: "majorities have a common member"},
		{Fault: process.AmnesiaRestart, How: "votes, promises and acceptances are on disk"},
		{Fault: process.Slowness, When: "but for decisions, which may wait forever", How: "a vote that is late is a no"},
	},
}

var messages = &process.Formula{Text: "(N-1)(A+2)+A-1, A = min(2f+1, N)", Eval: func(p process.Params) float64 {
	a := Acceptors(p.N, p.F)
	return float64((p.N-1)*(a+2) + a - 1)
}}
