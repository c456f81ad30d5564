package waitforgraph

import (
	"github.com/conclave-io/conclave/algorithm/deadlock"
	"github.com/conclave-io/conclave/process"
)

const known = "a cycle of N processes that know their maintainer"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.NoPhantom, When: "there is one maintainer at a time"},
		{Property: process.DeadlockFound, When: "the maintainer stays up, or another is elected"},
		{Property: process.Progress, Mode: deadlock.Break, When: "the maintainer stays up, or another is elected"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AllStart, Mode: deadlock.Declare, When: known,
			Exact: &process.Formula{Text: "3(N-1)", Eval: func(p process.Params) float64 { return float64(3 * (p.N - 1)) }}},
		{Metric: process.DetectionTime, Regime: process.AllStart, Mode: deadlock.Declare, When: known + ", after the suspicion time",
			Exact: &process.Formula{Text: "3", Eval: func(process.Params) float64 { return 3 }}},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}
