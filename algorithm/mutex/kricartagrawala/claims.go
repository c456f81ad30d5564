package kricartagrawala

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.AtMostK},
		{Property: process.MutualExclusion, Fails: true, When: "unless k = 1"},
		{Property: process.Progress},
		{Property: process.FencesGrowCausally},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Exact: process.PerOther("2(N-1)", 2)},
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, Lo: least, Hi: process.PerOther("2(N-1)", 2)},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "0 if k >= N", Exact: &process.Formula{
			Text: "2", Eval: func(p process.Params) float64 {
				if p.K >= p.N {
					return 0
				}
				return 2
			}}},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "k < N", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "answers are counted"},
		{Fault: process.CrashAny, How: "R6, with a reliable detector, frees its unit; without one, up to k-1 bystanders"},
	},
}

// least is what an entry costs if all answers that it did not need travel together with
// others: every process is asked, and N-k must answer.
var least = &process.Formula{Text: "2N-k-1", Eval: func(p process.Params) float64 { return float64(p.N - 1 + max(0, p.N-p.K)) }}
