package lamport

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockCondition},
		{Property: process.StrongClock, Fails: true, When: "of two concurrent events one may have the smaller number"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "it sends none itself; each message carries one number",
			Exact: process.Constant("0", 0)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt continues from the maximum"},
		{Fault: process.Loss, How: "a lost message has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "no process waits for another"},
		{Fault: process.Slowness, How: "no process waits for another"},
	},
}
