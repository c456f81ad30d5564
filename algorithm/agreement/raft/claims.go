package raft

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement},
		{Property: process.ValueValidity},
		{Property: process.Decision, When: "a majority is up, and eventually one of them leads for long enough"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: "the leader proposes; its heartbeats are not counted", Exact: process.PerOther("4(N-1)", 4)},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: "the leader proposes, N >= 2", Exact: process.Constant("3", 3)},
		{Metric: process.MessagesPerPeriod, Regime: process.Steady, When: "a heartbeat period is at least 2D", Exact: process.PerOther("2(N-1)", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an entry is named by its term and position"},
		{Fault: process.Loss, How: "heartbeats repeat missing entries, R8a repeats missing proposals"},
		{Fault: process.Duplication, How: "an entry that is stored is not stored again"},
		{Fault: process.CrashAny, When: "a majority stays up", How: "R3: a new leader has all committed entries"},
		{Fault: process.AmnesiaRestart, How: "term, vote and log are on disk"},
		{Fault: process.Slowness, When: "except decisions, which may wait forever", How: "only progress depends on time"},
	},
}
