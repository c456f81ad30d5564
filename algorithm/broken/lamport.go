package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/lamport"
	"github.com/conclave-io/conclave/process"
)

var ofLamport = []Variant{
	{
		Name:     "lamport-no-tie-break",
		Of:       lamport.Spec,
		New:      lamport.Flaw{NoTieBreak: true}.New,
		Mistake:  "Requests are compared by their times alone; of equal times, the request that arrived first is first.",
		Tempting: "Logical times seem to order events, and ties seem to be rare.",
		Wrong:    "Two that ask at once have equal times, each finds its own at the head, and both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "lamport-head-only",
		Of:       lamport.Spec,
		New:      lamport.Flaw{HeadOnly: true}.New,
		Mistake:  "A process enters when its request is at the head of its own queue.",
		Tempting: "The queue is sorted, and no request seems to be ahead of it.",
		Wrong:    "An older request may still be in flight.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
