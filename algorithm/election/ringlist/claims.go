package ringlist

import "github.com/conclave-io/conclave/process"

const allUp = "n processes are up; each process that is down costs one message more in each election; merge=no; N >= 2"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: allUp, Exact: twice,
			Said: []process.Figure{{Document: "[D3]", Text: "2n"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: allUp, Exact: eachStarter},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: allUp + "; all processes start", Exact: eachStarter,
			Said: []process.Figure{{Document: "[D3]", Text: "2n", Wrong: "counts one starter; each starter has its own circulation"}}},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: twiceRound},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: onceRound},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "messages carry their round and the processes that they have passed"},
		{Fault: process.Duplication, How: "a duplicate is stopped at a process that it has passed before"},
		{Fault: process.CrashAny, How: "ACKs and L5, L2b, L6, L7; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "L8, and the round on disk"},
	},
}

var twice = &process.Formula{Text: "2n", Eval: func(p process.Params) float64 { return 2 * float64(p.Live) }}

var eachStarter = &process.Formula{Text: "2n^2", Eval: func(p process.Params) float64 {
	return 2 * float64(p.Live) * float64(p.Starters)
}}

var twiceRound = &process.Formula{Text: "2n-1", Eval: func(p process.Params) float64 { return 2*float64(p.Live) - 1 }}

var onceRound = &process.Formula{Text: "n", Eval: func(p process.Params) float64 { return float64(p.Live) }}
