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
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "central-clock-same-reading",
		Of:       centralclock.Spec,
		New:      centralclock.Flaw{SameReading: true}.New,
		Mistake:  "The clock gives its reading as the stamp, also when it has given the same one before.",
		Tempting: "A physical clock that never stands still seems to give different readings.",
		Wrong:    "Its resolution is finite. Two with equal stamps each take the other's for no younger one, and both enter.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
}
