package changroberts

import "github.com/conclave-io/conclave/process"

const (
	single  = "N >= 2, d hops from the starter to the maximum"
	several = "all processes start at once, N >= 2"
)

var properties = process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence)

var costs = []process.Cost{
	{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: single,
		Exact: linear("2N+d", 2, 0, 1), Lo: linear("2N", 2, 0, 0), Hi: linear("3N-1", 3, -1, 0),
		Said: []process.Figure{
			{Document: "[D1]", Text: "2N to 3N-1"},
			{Document: "[D2]", Text: "3N-1 at worst"}}},
	{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + "; the mean is over all arrangements of the labels",
		Mean: meanRing, Lo: linear("3N-1", 3, -1, 0), Hi: fallingRing},
	{Metric: process.MessagesPerElection, Regime: process.Worst, When: several + ", the labels fall in the direction of sending",
		Exact: fallingRing,
		Said: []process.Figure{
			{Document: "[D1]", Text: "3N-1", Wrong: "the largest cost of a single starter; several starters cost up to N(N+1)/2+N"},
			{Document: "[D2]", Text: "3N-1", Wrong: "the largest cost of a single starter; several starters cost up to N(N+1)/2+N"}}},
	{Metric: process.ElectionTime, Regime: process.OneStarter, When: single + "; until the last process knows the leader", Exact: linear("2N+d-1", 2, -1, 1)},
	{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader", Exact: linear("2N-1", 2, -1, 0)},
	{Metric: process.ElectionTime, Regime: process.Worst, When: several + "; until the last process knows the leader", Exact: linear("2N-1", 2, -1, 0)},
}

var claims = process.Claims{
	Properties: properties,
	Costs:      costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded"},
		{Fault: process.Duplication, How: "a duplicate meets a participant, or a round that is over"},
	},
	Worst: falling,
}

var repairedClaims = process.Claims{
	Properties: properties,
	Costs:      costs,
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded"},
		{Fault: process.Duplication, How: "a duplicate meets a participant, or a round that is over"},
		{Fault: process.CrashAny, How: "C5, C6 and C7; after the election, a detector below or a call for a new election"},
		{Fault: process.AmnesiaRestart, How: "C8, and the round on disk"},
	},
	Worst: falling,
}

// falling is the ring on which the labels fall in the direction of sending.
func falling(n int) process.Arrangement {
	ring := make([]int, n)
	for i := range ring {
		ring[i] = n - 1 - i
	}
	return process.Arrangement{Ring: ring}
}

// linear is a formula in N and d.
func linear(text string, perProcess, plus, perHop float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 {
		return perProcess*float64(p.N) + plus + perHop*float64(p.Distance)
	}}
}

// fallingRing: every label travels to the maximum, the next lower one hop less.
var fallingRing = process.OfN("N(N+1)/2+N", func(n float64) float64 { return n*(n+1)/2 + n })

// meanRing: a label travels k hops if it is the highest of k in a row, which has the
// probability 1/k.
var meanRing = &process.Formula{Text: "N H_N+N", Eval: func(p process.Params) float64 {
	harmonic := 0.0
	for k := 1; k <= p.N; k++ {
		harmonic += 1 / float64(k)
	}
	return float64(p.N)*harmonic + float64(p.N)
}}
