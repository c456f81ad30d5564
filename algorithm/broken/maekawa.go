package broken

import (
	"github.com/conclave-io/conclave/algorithm/broken/maekawaslides"
	"github.com/conclave-io/conclave/algorithm/mutex/maekawa"
	"github.com/conclave-io/conclave/process"
)

var ofMaekawa = []Variant{
	{
		Name:     "maekawa-slides",
		Of:       maekawa.Spec,
		Spec:     maekawaslides.Spec,
		Mistake:  "A voter queues later requests without sending an answer, as in [D1].",
		Tempting: "Every two sets have a common member, so it is safe, and the votes eventually come back.",
		Wrong:    "Processes that ask at once each get some of their votes and wait for the rest forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "maekawa-no-sanders",
		Of:       maekawa.Spec,
		New:      maekawa.Flaw{NoDisplaced: true}.New,
		Mistake:  "The oldest request in the queue is not told FAILED when an older one comes, as Maekawa printed it.",
		Tempting: "The new request gets its answer, and the candidate has already been asked for its vote.",
		Wrong:    "The displaced process does not know that it must yield: all wait for each other forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 4, Entries: 1},
	},
	{
		Name:     "maekawa-keeps-votes",
		Of:       maekawa.Spec,
		New:      maekawa.Flaw{KeepsVotes: true}.New,
		Mistake:  "A process that withdraws before it has all votes tells no voter.",
		Tempting: "It never held the resource, and a vote that comes now goes back at once.",
		Wrong:    "The votes that came before stay with it, and a process that needs one of them waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1, Cancels: 1},
	},
}
