package fifo

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.OrderFIFO},
		{Property: process.MulticastAgreement, Mode: echo},
		{Property: process.MulticastAgreement, Mode: plain, Fails: true, When: "a sender that crashes between two sends has told only some processes"},
		{Property: process.OrderCausal, Fails: true, When: "an answer may be delivered before another process's question"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: plain,
			Exact: process.PerOther("N-1", 1)},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: echo,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "an early multicast is held until its turn"},
		{Fault: process.Duplication, How: "a multicast is identified by its sender and number"},
		{Fault: process.CrashAny, How: "the order does not depend on it; in mode echo, delivery does not either"},
	},
}
