package peterson

import (
	"math/bits"

	"github.com/conclave-io/conclave/process"
)

const (
	several = "N >= 2"
	rising  = "the labels rise in the direction of sending, N >= 2"
)

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", d hops from the starter to the maximum, N if it is the starter; until the last process knows the leader",
			Exact: &process.Formula{Text: "2N+d", Eval: func(p process.Params) float64 {
				if p.Distance == 0 {
					return 3 * float64(p.N)
				}
				return 2*float64(p.N) + float64(p.Distance)
			}}},
	},
}

// least is one phase, the last FIRST and ELECTED.
var least = process.PerProcess("4N", 4)

var most = process.OfN("2N floor(log2 N)+2N", func(n float64) float64 { return 2*n*float64(bits.Len(uint(n))-1) + 2*n })
