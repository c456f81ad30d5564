package reliable

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MulticastAgreement, Mode: echo},
		{Property: process.MulticastAgreement, Mode: plain, Fails: true, When: "a sender that crashes between two sends has told only some processes"},
		{Property: process.OrderFIFO, Fails: true, When: "a multicast may overtake an earlier one of its sender"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: echo,
			Exact: process.OfN("N(N-1)", func(n float64) float64 { return n * (n - 1) })},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, Mode: plain,
			Exact: process.PerOther("N-1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "nothing depends on the order of messages"},
		{Fault: process.Duplication, How: "a multicast is identified by its sender and number"},
		{Fault: process.CrashAny, Mode: echo, How: "a process sends a multicast to all others before it delivers it"},
	},
}
