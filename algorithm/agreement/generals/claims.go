package generals

import "github.com/conclave-io/conclave/process"

const (
	few      = "N > 3m, at most m processes are Byzantine or crash"
	inTime   = "all processes propose before the first round"
	calm     = "no process is Byzantine"
	allRound = calm + "; a round is 2D, and proposals are made in the round before the first"
)

var claimsOfOne = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.Unanimity, When: few},
		{Property: process.Decision},
		{Property: process.DecideOnce},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.OneStarter, When: calm, Exact: &process.Formula{
			Text: "sum of (N-1)(N-2)...(N-r) for r = 1 to m+1", Eval: func(p process.Params) float64 { return messages(p) }}},
		{Metric: process.DecisionTime, Regime: process.OneStarter, When: allRound, Exact: &time},
	},
	Survives: survives,
}

var claimsOfAll = process.Claims{
	Properties: []process.Claim{
		{Property: process.ValueAgreement, When: few},
		{Property: process.VectorValidity, When: few + ", " + inTime},
		{Property: process.Decision},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerDecision, Regime: process.AllStart, When: calm, Exact: &process.Formula{
			Text: "N times the sum of (N-1)(N-2)...(N-r) for r = 1 to m+1", Eval: func(p process.Params) float64 { return float64(p.N) * messages(p) }}},
		{Metric: process.DecisionTime, Regime: process.AllStart, When: allRound, Exact: &time},
	},
	Survives: survives,
}

var survives = []process.Survival{
	{Fault: process.CrashAny, When: few, How: "a crash is silence, which is one of the things that a Byzantine process may do"},
}

// messages is what one commander costs.
func messages(p process.Params) float64 {
	sum, term := 0, 1
	for r := 1; r <= p.F+1; r++ {
		term *= max(0, p.N-r)
		sum += term
	}
	return float64(sum)
}

var time = process.Formula{
	Text: "m+2 rounds = 2(m+2)",
	Eval: func(p process.Params) float64 { return float64(2 * (levels(p.F, p.N) + 2)) },
}
