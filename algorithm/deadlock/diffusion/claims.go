package diffusion

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "mode declare, or no deadlock is a part of another"},
		{Property: process.DeadlockFound},
		{Property: process.Progress, Mode: deadlock.Break},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, Mode: deadlock.Declare,
			When:  "all wait for all, one of them looks for a deadlock",
			Exact: &process.Formula{Text: "2N(N-1)", Eval: func(p process.Params) float64 { return float64(2 * p.N * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}
