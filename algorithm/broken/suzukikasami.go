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
		Mistake:  "A process that is inside drops the requests of others.",
		Tempting: "It cannot give the token now, and all others get the REQ as well.",
		Wrong:    "Only the holder puts the request into the queue, and it is not repeated: its process waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "suzuki-kasami-accepts-copies",
		Of:       suzukikasami.Spec,
		New:      suzukikasami.Flaw{AcceptsCopies: true}.New,
		Mistake:  "A process accepts every TOKEN, even a duplicate.",
		Tempting: "The numbers in the token identify old requests, which seems to be enough.",
		Wrong:    "They do not identify an old token: a TOKEN that the link duplicates is a second token.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 2, Duplicates: 1, Alone: true},
	},
}
