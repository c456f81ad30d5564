package lamport

import "github.com/conclave-io/conclave/process"

const (
	doc000 = "000_a21c1074769cc713.txt"
	doc001 = "001_7cbd60020dad965f.txt"
	doc002 = "002_fe17e557ba27646f.txt"
	doc003 = "003_8fa077ede16d71a0.txt"
	doc004 = "004_cdcb4f7ac3f80204.txt"
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
