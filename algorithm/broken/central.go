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
		Mistake:  "The coordinator grants its own requests without checking whether the resource is taken.",
		Tempting: "It is in charge, and need not ask anyone.",
		Wrong:    "It enters while the process that it granted the resource to is inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "central-unnumbered-release",
		Of:       central.Spec,
		New:      central.Flaw{UnnumberedEnding: true}.New,
		Mistake:  "The coordinator treats any RELEASE of the holder as the end of its present entry.",
		Tempting: "A process has one request at a time, so a number seems to say nothing new.",
		Wrong:    "A duplicate RELEASE, or the answer to a duplicate GRANTED, frees the resource while its sender is inside again.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
}
