package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/centralclock"
	"github.com/conclave-io/conclave/process"
)

var ofCentralClock = []Variant{
	{
		Name:     "central-clock-answers-early",
		Of:       centralclock.Spec,
		New:      centralclock.Flaw{AnswersEarly: true}.New,
		Mistake:  "A process that waits for its stamp permits others at once.",
		Tempting: "It has no stamp yet, so it seems that it cannot be the older one.",
		Wrong:    "The stamp that is on its way may be the older one; then both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "central-clock-forgets-itself",
		Of:       centralclock.Spec,
		New:      centralclock.Flaw{ForgetsItself: true}.New,
		Mistake:  "The clock permits every request that it stamps, also while it waits or is inside itself.",
		Tempting: "It is asked for a stamp; that it is a client, too, is another matter.",
		Wrong:    "Nobody asks it again, so it and the other enter together.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
