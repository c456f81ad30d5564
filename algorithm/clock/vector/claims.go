package vector

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockCondition},
		{Property: process.StrongClock},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "of its own; each message carries N numbers",
			Exact: &process.Formula{Text: "0", Eval: func(process.Params) float64 { return 0 }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt takes the maximum of each component"},
		{Fault: process.Loss, How: "what was not received has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "nobody waits for anybody"},
		{Fault: process.Slowness, How: "nobody waits for anybody"},
	},
}
