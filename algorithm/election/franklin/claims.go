package franklin

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

const (
	several = "N >= 2"
	rising  = "the labels rise to the right, N >= 2"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.LeaderAgreement},
		{Property: process.LeaderValidity},
		{Property: process.LeaderTermination},
		{Property: process.Quiescence},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", s hops from the starter to the maximum, the shorter way; N+ceil(N/2)-1 more if it is opposite; until the last process knows the leader",
			Exact: fromStart},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "labels carry their phase, and one of the next phase is kept"},
		{Fault: process.Duplication, How: "a label of a phase that is over is discarded, and one of this phase replaces its twin"},
	},
}

// least is one phase with several candidates, the last phase and ELECTED.
var least = formula("5N", func(p process.Params) float64 { return 5 * float64(p.N) })

var most = formula("2N floor(log2 N)+3N", func(p process.Params) float64 {
	return 2*float64(p.N)*float64(bits.Len(uint(p.N))-1) + 3*float64(p.N)
})

// fromStart is when the maximum has the labels of its neighbors, then N hops of its
// labels, and N-1 of ELECTED. The farther neighbor of the maximum starts one hop after
// the maximum, unless the maximum is the farthest of all.
var fromStart = formula("2N+1+s", func(p process.Params) float64 {
	s := min(p.Distance, p.N-p.Distance)
	alone := s + 2
	if s == p.N/2 {
		alone = (p.N + 1) / 2
	}
	return float64(alone + 2*p.N - 1)
})

func formula(text string, eval func(process.Params) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: eval}
}
