package lelann

import "github.com/conclave-io/conclave/process"

const several = "N >= 2"

var claims = process.Claims{
	Properties: process.Promises(process.LeaderAgreement, process.LeaderValidity, process.LeaderTermination, process.Quiescence),
	Costs: []process.Cost{
		{Metric: process.MessagesPerElection, Regime: process.OneStarter, When: several, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.AllStart, When: several, Exact: square},
		{Metric: process.MessagesPerElection, Regime: process.Worst, When: several, Exact: square},
		{Metric: process.ElectionTime, Regime: process.OneStarter, When: several + "; until the last process knows the leader",
			Exact: process.OfN("2N-1", func(n float64) float64 { return 2*n - 1 })},
		{Metric: process.ElectionTime, Regime: process.AllStart, When: several + "; until the last process knows the leader",
			Exact: process.PerProcess("N", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "a duplicate label changes nothing, and its owner removes every duplicate from the ring"},
	},
}

var square = process.OfN("N^2", func(n float64) float64 { return n * n })
