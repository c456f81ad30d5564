package lamport

import "github.com/conclave-io/conclave/process"

const (
	doc000 = "[D0]"
	doc001 = "[D1]"
	doc002 = "[D2]"
	doc003 = "[D3]"
	doc004 = "[D4]"
)

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.ClockCondition},
		{Property: process.StrongClock, Fails: true, When: "of two events that know nothing of each other one may have the smaller number"},
	},
	Costs: []process.Cost{
		{Metric: process.MessageCount, Regime: process.AnyLoad, When: "of its own; each message carries one number",
			Exact: &process.Formula{Text: "0", Eval: func(process.Params) float64 { return 0 }}},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "a receipt counts on from the maximum"},
		{Fault: process.Loss, How: "what was not received has no effect"},
		{Fault: process.Duplication, How: "the second receipt is one more event"},
		{Fault: process.CrashAny, How: "nobody waits for anybody"},
		{Fault: process.Slowness, How: "nobody waits for anybody"},
	},
}
