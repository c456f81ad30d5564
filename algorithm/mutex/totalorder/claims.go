package totalorder

import "github.com/conclave-io/conclave/process"

// claims hold above any layer that delivers in total order.
var claims = process.Claims{
	Properties: process.Promises(process.MutualExclusion, process.Progress, process.FencesGrow),
}

// Costs returns what an entry costs above a layer that takes the given number of
// messages for a multicast. The layer takes two delays until the sender delivers, and
// the given number until others do.
func Costs(when string, multicast, others *process.Formula) []process.Cost {
	entry := &process.Formula{
		Text: "2" + multicast.Text,
		Eval: func(p process.Params) float64 { return 2 * multicast.Eval(p) },
	}
	return []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.AnyLoad, When: when, Exact: entry,
			Said: []process.Figure{
				{Document: "[D0]", Text: "2 (N-1)", Wrong: "the cost of a permission algorithm; it is headed totally ordered multicast but delivers nothing in order"},
			}},
		{Metric: process.ClientDelay, Regime: process.Idle, When: when, Exact: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: when, Exact: others},
		{Metric: process.Throughput, Regime: process.Saturated, When: when, Exact: &process.Formula{
			Text: "1/" + others.Text,
			Eval: func(p process.Params) float64 { return 1 / others.Eval(p) },
		}},
	}
}
