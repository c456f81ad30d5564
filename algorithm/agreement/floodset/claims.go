package floodset

import "github.com/conclave-io/conclave/process"

const calm = "all processes propose different values at the same moment; no process crashes"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: atMostF},
		{Property: process.ValueValidity},
		{Property: process.Decision, When: "all processes propose within less than one delay"},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "2N(N-1); N(N-1) if f = 0", Eval: func(p process.Params) float64 { return float64(min(p.F+1, 2) * p.N * (p.N - 1)) }}},
		{Metric: process.MessagesPerDecision, Regime: process.Worst, When: atMostF, Hi: &process.Formula{
			Text: "N(N-1)(f+1)", Eval: func(p process.Params) float64 { return float64(rounds(p) * p.N * (p.N - 1)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, Mode: full, When: calm + ", a round is 2D", Exact: &process.Formula{
			Text: "f+1 rounds = 2(f+1)", Eval: func(p process.Params) float64 { return float64(2 * rounds(p)) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, Mode: early, When: calm + ", a round is 2D", Exact: process.Constant("one round = 2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.CrashAny, When: atMostF, How: "in one of f+1 rounds no process crashes"},
	},
}

const atMostF = "at most f processes crash"

func rounds(p process.Params) int { return min(p.F, p.N-1) + 1 }
