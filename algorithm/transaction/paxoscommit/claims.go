package paxoscommit

import "github.com/conclave-io/conclave/process"

const (
	calm     = "all processes vote yes at the same moment; no process crashes and no message is lost"
	majority = "a majority of the acceptors is up, and no other leader interferes"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.Atomicity},
		{Property: process.StableDecision},
		{Property: process.UnanimousCommit},
		{Property: process.NonTriviality},
		{Property: process.RepairTermination, When: "no other leader interferes"},
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
		{Fault: process.Reorder, How: "after a promise, messages of earlier ballots are ignored"},
		{Fault: process.Loss, How: "C5"},
		{Fault: process.Duplication, How: "each process is counted once"},
		{Fault: process.CrashAny, When: "a majority of the acceptors stays up", How: "majorities have a common member"},
		{Fault: process.AmnesiaRestart, How: "votes, promises and acceptances are on disk"},
		{Fault: process.Slowness, When: "except decisions, which may wait forever", How: "a late vote is a no"},
	},
}

var messages = &process.Formula{Text: "(N-1)(A+2)+A-1, A = min(2f+1, N)", Eval: func(p process.Params) float64 {
	a := Acceptors(p.N, p.F)
	return float64((p.N-1)*(a+2) + a - 1)
}}
