package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/naimitrehel"
	"github.com/conclave-io/conclave/process"
)

var ofNaimiTrehel = []Variant{
	{
		Name:     "naimi-trehel-root-gives",
		Of:       naimitrehel.Spec,
		New:      naimitrehel.Flaw{RootGives: true}.New,
		Mistake:  "A root that is not inside sends the token to the process that asks.",
		Tempting: "In a quiet system the root has the token.",
		Wrong:    "A process is the root as soon as it asks, before the token comes: it sends one that it does not have.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "naimi-trehel-stays-root",
		Of:       naimitrehel.Spec,
		New:      naimitrehel.Flaw{StaysRoot: true}.New,
		Mistake:  "A process that waits or is inside notes which process is next, and remains the root.",
		Tempting: "It has the token, or will have it, so requests should come here.",
		Wrong:    "The next request takes the place of the one before, and the process that it displaces waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
}
