package totalsequencer

import "github.com/conclave-io/conclave/process"

var claims = process.Claims{
	Properties: process.Promises(process.OrderTotal, process.OrderCausal, process.OrderFIFO, process.MulticastAgreement),
	Costs: []process.Cost{
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is not the sequencer, and N >= 2",
			Exact: process.PerProcess("N", 1)},
		{Metric: process.MessagesPerMulticast, Regime: process.AnyLoad, When: "the sender is the sequencer", Exact: lessOne},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "numbers; an early message is kept"},
		{Fault: process.Duplication, How: "numbers"},
		{Fault: process.CrashAny, How: "T1 to T5, with a reliable detector and an election below"},
	},
}

var lessOne = process.PerOther("N-1", 1)
