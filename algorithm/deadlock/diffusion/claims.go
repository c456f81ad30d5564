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
			Exact: process.OfN("2N(N-1)", func(n float64) float64 { return 2 * n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}
