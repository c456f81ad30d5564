// Package ordered has mutual exclusion above totally ordered multicast: all processes
// keep the same queue, because all deliver the requests in the same order.
package ordered

import (
	"slices"

	"github.com/conclave-io/conclave/algorithm/multicast/totallamport"
	"github.com/conclave-io/conclave/algorithm/multicast/totalsequencer"
	"github.com/conclave-io/conclave/algorithm/mutex/totalorder"
	"github.com/conclave-io/conclave/process"
)

// All lists the stacks.
var All = []*process.Spec{TotalOrder, TotalOrderSequencer}

// TotalOrder is mutual exclusion above totally ordered multicast by Lamport's clocks.
// With two processes, the one that receives a multicast need not wait for another
// process.
var TotalOrder = ordered("total-order", "Mutual exclusion over totally ordered multicast", totallamport.Spec, "N >= 2",
	&process.Formula{Text: "min(2, N-1)", Eval: func(p process.Params) float64 { return float64(min(2, p.N-1)) }},
	process.Claim{Property: process.OrderHappenedBefore},
	process.Claim{
		Property: process.BoundedBypass, When: "counted from the request",
		Bound: process.PerOther("2(N-1)", 2),
	})

// TotalOrderSequencer is the same queue above a sequencer.
var TotalOrderSequencer = ordered("total-order-sequencer", "Mutual exclusion over a sequencer", totalsequencer.Spec,
	"the client is not the sequencer, and N >= 2",
	process.Constant("2", 2))

// ordered puts the queue above a total order. It survives what the order survives: the
// queue itself only needs to be told of crashes.
func ordered(name, title string, order *process.Spec, when string, others *process.Formula, more ...process.Claim) *process.Spec {
	s := process.Compose(name, title, order, totalorder.Spec)
	i := slices.IndexFunc(order.Claims.Costs, func(c process.Cost) bool {
		return c.Metric == process.MessagesPerMulticast && c.Exact != nil
	})
	s.Claims.Properties = slices.Concat(s.Claims.Properties, more)
	s.Claims.Costs = totalorder.Costs(when, order.Claims.Costs[i].Exact, others)
	s.Claims.Survives = order.Claims.Survives
	return s
}
