package phaseking

import "github.com/conclave-io/conclave/process"

const (
	few  = "N > 4m, at most m processes are Byzantine or crash"
	calm = "no process is Byzantine"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.Unanimity, When: few + ", all processes propose before the first round"},
		{Property: process.Decision},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "(m+1)(N-1)(N+1)", Eval: func(p process.Params) float64 { return float64((p.F + 1) * (p.N - 1) * (p.N + 1)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: calm + "; a round is 2D, and proposals are made in the round before the first", Exact: &process.Formula{
			Text: "2m+3 rounds = 2(2m+3)", Eval: func(p process.Params) float64 { return float64(2 * (2*p.F + 3)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: few, How: "a crash is silence, which is one of the things that a Byzantine process may do"},
	},
}
