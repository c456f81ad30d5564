package edgechasing

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

const cycle = "a cycle of N processes, one of them looks for a deadlock"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "mode declare, or no two cycles have a process in common"},
		{Property: process.DeadlockFound},
		{Property: process.Progress, Mode: deadlock.Break},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.OneStarter, Mode: deadlock.Declare, When: cycle,
			Exact: process.PerProcess("N", 1)},
		{Metric: process.MessageCount, Regime: process.AllStart, Mode: deadlock.Declare, When: "all N processes of a cycle look for a deadlock",
			Exact: process.OfN("N^2", func(n float64) float64 { return n * n })},
		{Metric: process.MessageCount, Regime: process.Worst, When: "one probe for each edge, if one process looks for a deadlock and all wait for all",
			Hi: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.DetectionTime, Regime: process.OneStarter, Mode: deadlock.Declare, When: cycle + ", after its suspicion time",
			Exact: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}
