package paxos

import "github.com/conclave-io/conclave/process"

const majority = "a majority stays up"

// claims are the same with and without an election, except for costs and termination.
func claims(led bool) process.Claims {
	c := process.Claims{
		Properties: []process.Claim{
			{Property: process.ValueAgreement},
			{Property: process.ValueValidity},
			{Property: process.DecideOnce},
			{Property: process.Decision, When: majority},
		},
		Survives: []process.Survival{
			{Fault: process.Reorder, How: "answers name their ballot"},
			{Fault: process.Loss, How: "P9"},
			{Fault: process.Duplication, How: "each process is counted once"},
			{Fault: process.CrashAny, When: majority, How: "majorities have a common member"},
			{Fault: process.AmnesiaRestart, How: "promises and acceptances are on disk"},
			{Fault: process.Slowness, When: "except decisions, which may wait forever", How: "only progress depends on time"},
		},
	}
	if !led {
		c.Properties[3] = process.Claim{Property: process.Decision, Fails: true, When: "two proposers may disturb each other forever"}
		return c
	}
	c.Costs = []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: "the leader is known and proposes", Exact: process.PerOther("5(N-1)", 5)},
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: "the leader is known, all propose", Exact: process.PerOther("6(N-1)", 6)},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: "the leader is known and proposes, N >= 2", Exact: process.Constant("5", 5)},
	}
	return c
}
