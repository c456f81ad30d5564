package broken

import (
	"github.com/conclave-io/conclave/algorithm/deadlock/diffusion"
	"github.com/conclave-io/conclave/algorithm/deadlock/edgechasing"
	"github.com/conclave-io/conclave/algorithm/deadlock/requests"
	"github.com/conclave-io/conclave/algorithm/deadlock/waitforgraph"
	"github.com/conclave-io/conclave/algorithm/stack/deadlocks"
	"github.com/conclave-io/conclave/process"
)

var ofWaitForGraph = of(deadlocks.WaitForGraph, []Variant{
	{
		Name:     "wait-for-graph-no-confirmation",
		New:      waitforgraph.Flaw{NoConfirmation: true}.New,
		Mistake:  "The maintainer declares every cycle in the reports, without asking again.",
		Tempting: "Each edge was reported by the waiting process itself, which must know.",
		Wrong:    "The reports are from different moments: one edge disappears before the other appears, but the graph has both.",
		Breaks:   process.NoPhantom,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 2, AnyTime: true, Options: option("mode", "declare")},
	},
	{
		Name:     "wait-for-graph-one-sided",
		New:      waitforgraph.Flaw{OneSided: true}.New,
		Mistake:  "The maintainer asks again, but believes an edge that only the waiting process has confirmed.",
		Tempting: "The edges have the same versions in both rounds, so nobody has gone on in between.",
		Wrong:    "The answer may be in flight all the time: its receiver still waits, but its sender is free to wait for the receiver.",
		Breaks:   process.NoPhantom,
		Bounds: Bounds{N: 3, Entries: 1, Clients: []process.ID{0, 1}, Timeouts: 2, AnyTime: true, Options: []process.OptionValue{
			{Name: "mode", Value: "declare"}, {Name: "ask", Value: "2"},
		}},
	},
})

var ofDiffusion = of(deadlocks.Diffusion, []Variant{
	{
		Name:     "diffusion-first-reply",
		New:      diffusion.Flaw{FirstReply: true}.New,
		Mistake:  "One reply is enough.",
		Tempting: "The query has gone round a cycle of processes that wait, and a cycle is a deadlock.",
		Wrong:    "In the OR model it is not: another process can answer one on the cycle.",
		Breaks:   process.NoPhantom,
		Bounds:   Bounds{N: 3, Entries: 1, Timeouts: 1, AnyTime: true, Options: option("mode", "declare")},
	},
	{
		Name:     "diffusion-by-probes",
		Spec:     probesOverOr(),
		Mistake:  "Edge chasing is used where one answer is enough.",
		Tempting: "A probe that comes back has gone round a cycle of processes that wait for each other.",
		Wrong:    "Each of them may also wait for others, and one answer frees it.",
		Breaks:   process.NoPhantom,
		Bounds:   Bounds{N: 3, Entries: 1, Timeouts: 1, AnyTime: true, Options: option("mode", "declare"), Alone: true},
	},
})

// probesOverOr is edge chasing over requests of the OR model.
func probesOverOr() *process.Spec {
	s := process.Compose("diffusion-by-probes", "Edge chasing over requests of the OR model", requests.Or, edgechasing.Spec)
	s.Waits = requests.Waits
	s.Claims = process.Claims{Properties: []process.Claim{
		{Property: process.NoPhantom, Fails: true, When: "a cycle is not a deadlock where one answer is enough"},
	}}
	return s
}

var ofEdgeChasing = of(deadlocks.EdgeChasing, []Variant{
	{
		Name:     "edge-chasing-no-debt",
		New:      edgechasing.Flaw{NoDebt: true}.New,
		Mistake:  "A process that waits passes a probe on without checking that it still owes the sender an answer.",
		Tempting: "The probe came along an edge of the wait-for graph, and its sender waits.",
		Wrong:    "The answer may be in flight: the edge is gone when the probe crosses it, and a cycle with it is declared.",
		Breaks:   process.NoPhantom,
		Bounds:   Bounds{N: 3, Entries: 1, Timeouts: 1, AnyTime: true, Options: option("mode", "declare")},
	},
	{
		Name:     "edge-chasing-keeps-passed",
		New:      edgechasing.Flaw{KeepsPassed: true}.New,
		Mistake:  "A process passes on one probe of each initiator, and never forgets that.",
		Tempting: "One probe on each edge is enough to find a cycle.",
		Wrong:    "The first detection finds nothing. When there is a deadlock, the probes of the second are ignored.",
		Breaks:   process.Progress,
		Scenario: "lab/scenarios/broken/edge-chasing-keeps-passed.yaml",
		Bounds:   Bounds{N: 2, Entries: 2},
	},
	{
		Name:     "edge-chasing-own-victim",
		New:      edgechasing.Flaw{OwnVictim: true}.New,
		Mistake:  "A process that finds a deadlock gives up itself.",
		Tempting: "It knows that it is part of the deadlock, and need not tell any other.",
		Wrong:    "Several processes find the same deadlock, and all of them give up, where one would be enough.",
		Breaks:   process.NoPhantom,
		Bounds:   Bounds{N: 2, Entries: 1, Timeouts: 2, AnyTime: true},
	},
})
