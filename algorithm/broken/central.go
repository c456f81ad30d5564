package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/central"
	"github.com/conclave-io/conclave/process"
)

var ofCentral = []Variant{
	{
		Name:     "central-own-first",
		Of:       central.Spec,
		New:      central.Flaw{OwnFirst: true}.New,
		Mistake:  "The coordinator grants its own requests without a look at who holds.",
		Tempting: "It is in charge, and need not ask anybody.",
		Wrong:    "It enters beside the process to which it has given the right.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "central-unnumbered-release",
		Of:       central.Spec,
		New:      central.Flaw{UnnumberedEnding: true}.New,
		Mistake:  "The coordinator takes any RELEASE of the holder for the end of its present entry.",
		Tempting: "A process has one request at a time, so a number seems to say nothing new.",
		Wrong:    "A repeated RELEASE, or the answer to a repeated GRANTED, frees the resource while its sender is inside again.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
}
