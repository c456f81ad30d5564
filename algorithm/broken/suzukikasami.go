package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/suzukikasami"
	"github.com/conclave-io/conclave/process"
)

var ofSuzukiKasami = []Variant{
	{
		Name:     "suzuki-kasami-drops-while-inside",
		Of:       suzukikasami.Spec,
		New:      suzukikasami.Flaw{DropsInside: true}.New,
		Mistake:  "A process that is inside throws away what others ask.",
		Tempting: "It cannot give the token now, and all others get the REQ as well.",
		Wrong:    "Nobody but the holder puts it into the queue, and nobody asks again: it waits for ever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "suzuki-kasami-accepts-copies",
		Of:       suzukikasami.Spec,
		New:      suzukikasami.Flaw{AcceptsCopies: true}.New,
		Mistake:  "A process takes every TOKEN, whether or not it has had it before.",
		Tempting: "The numbers in the token tell old requests, which seems to be enough.",
		Wrong:    "They do not tell an old token: one that the link repeats is a second one.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 2, Duplicates: 1, Alone: true},
	},
}
