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
	Properties: []process.Claim{
		{Property: process.LeaderAgreement},
		{Property: process.LeaderValidity},
		{Property: process.LeaderTermination},
		{Property: process.Quiescence},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: rising, Exact: least},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several + ", any arrangement of the labels, any starters", Lo: least, Hi: most},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: rising + ", d hops from the starter to the maximum, N if it is the starter; until the last process knows the leader",
			Exact: formula("2N+d", func(p process.Params) float64 {
				if p.Distance == 0 {
					return 3 * float64(p.N)
				}
				return 2*float64(p.N) + float64(p.Distance)
			})},
	},
}

// least is one phase, the last FIRST and ELECTED.
var least = formula("4N", func(p process.Params) float64 { return 4 * float64(p.N) })

var most = formula("2N floor(log2 N)+2N", func(p process.Params) float64 {
	return 2*float64(p.N)*float64(bits.Len(uint(p.N))-1) + 2*float64(p.N)
})

func formula(text string, eval func(process.Params) float64) *process.Formula {
	return &process.Formula{Text: text, Eval: eval}
}
