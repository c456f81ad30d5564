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
			Exact: process.PerOther("3(N-1)", 3)},
		{Metric: process.DetectionTime, Regime: process.AllStart, Mode: deadlock.Declare, When: known + ", after the suspicion time",
			Exact: process.Constant("3", 3)},
	},
	Survives: []process.Survival{
		{Fault: process.Slowness, How: "no rule depends on the suspicion time being long enough"},
	},
}
