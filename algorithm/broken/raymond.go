package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/raymond"
	"github.com/conclave-io/conclave/process"
)

var ofRaymond = []Variant{
	{
		Name:     "raymond-forgets-others",
		Of:       raymond.Spec,
		New:      raymond.Flaw{ForgetsOthers: true}.New,
		Mistake:  "Who sends the token away does not ask for it back, though others are in its queue.",
		Tempting: "It has answered the REQ at the head of the queue and wants nothing itself.",
		Wrong:    "The others have asked once and do not ask again: they wait for ever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "raymond-enters-at-head",
		Of:       raymond.Spec,
		New:      raymond.Flaw{EntersAtHead: true}.New,
		Mistake:  "A process enters when it is at the head of its own queue, with or without the token.",
		Tempting: "The head of the queue is next.",
		Wrong:    "It is next among its neighbours, when the token comes; somebody else may be inside with it.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
