package totallamport

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: process.Promises(process.OrderTotal, process.OrderCausal, process.OrderFIFO, process.MulticastAgreement),
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Duplication, How: "the times on a link grow, so a duplicate is recognised"},
		{Fault: process.CrashAny, How: "ACKs carry what they acknowledge, and R5, with a reliable detector"},
	},
}
