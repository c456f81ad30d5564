package totalsequencer

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.OrderTotal},
		{Property: process.OrderCausal},
		{Property: process.OrderFIFO},
		{Property: process.MulticastAgreement},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is not the sequencer, and N >= 2",
			Exact: &process.Formula{Text: "N", Eval: func(p process.Params) float64 { return float64(p.N) }}},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is the sequencer", Exact: lessOne},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "numbers; an early message is kept"},
		{Fault: process.Duplication, How: "numbers"},
		{Fault: process.CrashAny, How: "T1 to T5, with a reliable detector and an election below"},
	},
}

var lessOne = process.PerOther("N-1", 1)
