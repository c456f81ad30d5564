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
		Mistake:  "A process that sends the token away does not ask for it back, although others are in its queue.",
		Tempting: "It has answered the REQ at the head of the queue and wants nothing itself.",
		Wrong:    "The others have asked once and do not ask again: they wait forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "raymond-enters-at-head",
		Of:       raymond.Spec,
		New:      raymond.Flaw{EntersAtHead: true}.New,
		Mistake:  "A process enters when it is at the head of its own queue, with or without the token.",
		Tempting: "The head of the queue is next.",
		Wrong:    "It is only next among its neighbours when the token comes; another process may be inside with it.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "raymond-turns-early",
		Of:       raymond.Spec,
		New:      raymond.Flaw{TurnsEarly: true}.New,
		Mistake:  "A process that gets a REQ points at its sender at once, while the token is elsewhere.",
		Tempting: "The token will go there next, and in the algorithm of Naimi and Trehel pointers turn so.",
		Wrong:    "A pointer leads away from the token, or the holder forgets that it has it: a later request never reaches it.",
		Breaks:   process.StateInvariant,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
