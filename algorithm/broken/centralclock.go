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
		Wrong:    "The stamp that is in flight may be the older one; then both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
	{
		Name:     "central-clock-forgets-itself",
		Of:       centralclock.Spec,
		New:      centralclock.Flaw{ForgetsItself: true}.New,
		Mistake:  "The clock permits every request that it stamps, even while it waits or is inside itself.",
		Tempting: "It is asked for a stamp, which seems unrelated to its own requests.",
		Wrong:    "No process asks it again, so it and the other process are inside together.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
