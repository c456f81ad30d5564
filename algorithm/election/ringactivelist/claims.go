package ringactivelist

import "github.com/conclave-io/conclave/process"

const allUp = "n processes are up, N >= 2; processes that are down cost a few messages more"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: allUp, Exact: square,
			Said: []process.Figure{{Document: "[D3]", Text: "2n", Wrong: "the cost of the ring with a list of senders; here every label goes round"}}},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: allUp, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: allUp, Exact: square},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: &process.Formula{
			Text: "2n-1", Eval: func(p process.Params) float64 { return 2*float64(p.Live) - 1 }}},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: "all processes are up, N >= 2; until the last process knows the leader", Exact: &process.Formula{
			Text: "n", Eval: func(p process.Params) float64 { return float64(p.Live) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the owner removes every duplicate of its label from the ring"},
	},
}

var square = &process.Formula{Text: "n^2", Eval: func(p process.Params) float64 { return float64(p.Live) * float64(p.Live) }}
