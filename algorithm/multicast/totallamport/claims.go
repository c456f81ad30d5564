package totallamport

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.OrderTotal},
		{Property: process.OrderCausal},
		{Property: process.OrderFIFO},
		{Property: process.MulticastAgreement},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad,
			Exact: &process.Formula{Text: "N(N-1)", Eval: func(p process.Params) float64 { return float64(p.N * (p.N - 1)) }}},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the times on a link grow, so a duplicate is recognised"},
		{Fault: process.CrashAny, How: "ACKs carry what they acknowledge, and R5, with a reliable detector"},
	},
}
