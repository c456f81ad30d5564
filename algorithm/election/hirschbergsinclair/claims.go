package hirschbergsinclair

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

const several = "N >= 2, k is log2 N rounded up"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several + ", the labels rise to the right",
			Lo: formula("3N+2^(k+2)-4", func(n, span float64) float64 { return 3*n + 4*span - 4 }), Hi: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + "; the mean is over all arrangements of the labels, and w is the number of processes among which a candidate must be the best for a hop", Mean: mean,
			Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: several + "; until the last process knows the leader",
			Lo: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 }),
			Hi: formula("2^(k+1)+3N-4", func(n, span float64) float64 { return 2*span + 3*n - 4 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader",
			Exact: formula("2^(k+1)+2N-3", func(n, span float64) float64 { return 2*span + 2*n - 3 })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a message of a round that is over is discarded, and a phase ends when both replies have come"},
		{Fault: process.Duplication, How: "replies are counted by direction; a late duplicate is discarded"},
	},
}

// least is the cost of a ring on which labels rise or fall: 3N messages in the first
// phase, and then those of the leader.
var least = formula("6N+2^(k+2)-8", func(n, span float64) float64 { return 6*n + 4*span - 8 })

// most is 8N messages in each phase, and ELECTED.
var most = formula("8N(k+1)+N", func(n, span float64) float64 {
	return 8*n*float64(bits.Len(uint(span))) + n
})

// mean sums, over the hops of a PROBE and the REPLY, the probability that a candidate
// gets that far. A candidate sends a PROBE of a phase of reach r, and the PROBE passes
// j processes, under one condition: it is the best of the r/2 processes behind it (none
// in the first phase), and of the j or r/2 in front of it, whichever is more. A
// candidate is the best of w processes with the probability 1/w.
var mean = &process.Formula{Text: "N+2N sum of 1/w over hops", Eval: func(p process.Params) float64 {
	hops := 0.0
	for reach := 1; reach/2 < p.N; reach *= 2 {
		behind := reach / 2
		likely := func(passed int) float64 { return 1 / float64(min(p.N, behind+max(behind, passed)+1)) }
		for j := range min(reach, p.N) {
			hops += likely(j)
		}
		if reach < p.N {
			hops += float64(reach) * likely(reach)
		}
	}
	return float64(p.N) + 2*float64(p.N)*hops
}}

// formula is a formula in N and in the reach of the last phase, 2^k.
func formula(text string, eval func(n, span float64) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: func(p process.Params) float64 {
		span := 1
		for span < p.N {
			span *= 2
		}
		return eval(float64(p.N), float64(span))
	}}
}
