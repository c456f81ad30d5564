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
		Mistake:  "A voter queues the requests that come later without a word, as in [D1].",
		Tempting: "Every two sets have a common member, so it is safe, and the votes come back in the end.",
		Wrong:    "Processes that ask at once each get a part of their votes and wait for the rest for ever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "maekawa-no-sanders",
		Of:       maekawa.Spec,
		New:      maekawa.Flaw{NoDisplaced: true}.New,
		Mistake:  "Who was the best in the queue is not told FAILED when a better one comes, as Maekawa printed it.",
		Tempting: "The new one is told what it must know, and the candidate is asked for its vote already.",
		Wrong:    "The displaced one does not know that it must yield: all wait for each other for ever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 4, Entries: 1},
	},
	{
		Name:     "maekawa-keeps-votes",
		Of:       maekawa.Spec,
		New:      maekawa.Flaw{KeepsVotes: true}.New,
		Mistake:  "Who gives up before it has all votes tells nobody.",
		Tempting: "It never held the resource, and a vote that comes now goes back at once.",
		Wrong:    "The votes that came before stay with it, and whoever needs one of them waits for ever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1, Cancels: 1},
	},
}
