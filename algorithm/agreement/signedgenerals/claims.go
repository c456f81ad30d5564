package signedgenerals

import "github.com/conclave-io/conclave/process"

const (
	few  = "at most m processes are Byzantine or crash"
	calm = "no process is Byzantine"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.Unanimity, When: few + ", the commander proposes before the first round"},
		{Property: process.Decision},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: calm, Exact: &process.Formula{
			Text: "(N-1)(N-1); N-1 if m = 0", Eval: func(p process.Params) float64 {
				return float64((p.N - 1) * (1 + min(p.F, 1)*max(0, p.N-2)))
			}}},
		{Metric: process.MessagesPerDecision, Regime: process.Worst, When: few + "; counts the messages of loyal processes", Hi: &process.Formula{
			Text: "N-1 + 2(N-1)(N-2)", Eval: func(p process.Params) float64 { return float64((p.N - 1) * (1 + 2*max(0, p.N-2))) }}},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: calm + "; a round is 2D, and the proposal is made in the round before the first", Exact: &process.Formula{
			Text: "m+2 rounds = 2(m+2)", Eval: func(p process.Params) float64 { return float64(2 * (levels(p.F, p.N) + 2)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: few, How: "a crash is silence, which is one of the things that a Byzantine process may do"},
	},
}
