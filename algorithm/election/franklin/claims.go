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
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
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
var least = process.PerProcess("5N", 5)

var most = process.OfN("2N floor(log2 N)+3N", func(n float64) float64 { return 2*n*float64(bits.Len(uint(n))-1) + 3*n })

// fromStart is when the maximum has the labels of its neighbors, then N hops of its
// labels, and N-1 of ELECTED. The farther neighbor of the maximum starts one hop after
// the maximum, unless the maximum is the farthest of all.
var fromStart = &process.Formula{Text: "2N+1+s", Eval: func(p process.Params) float64 {
	s := min(p.Distance, p.N-p.Distance)
	alone := s + 2
	if s == p.N/2 {
		alone = (p.N + 1) / 2
	}
	return float64(alone + 2*p.N - 1)
}}
