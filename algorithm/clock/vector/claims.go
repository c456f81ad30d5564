package vector

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: process.Promises(process.ClockCondition, process.StrongClock),
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "it sends none itself; each message carries N numbers",
			Exact: process.Constant("0", 0)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt takes the maximum of each component"},
		{Fault: process.Loss, How: "a lost message has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "no process waits for another"},
		{Fault: process.Slowness, How: "no process waits for another"},
	},
}
