package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/majority"
	"github.com/conclave-io/conclave/process"
)

var ofMajority = []Variant{
	{
		Name:     "majority-half",
		Of:       majority.Spec,
		New:      majority.Flaw{Half: true}.New,
		Mistake:  "Half of the votes are enough: m = n/2, as [D3] prints it without the sign >.",
		Tempting: "No other client can have more.",
		Wrong:    "Another client can have as many.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
	{
		Name:     "majority-drops-fences",
		Of:       majority.Spec,
		New:      majority.Flaw{DropsFences: true}.New,
		Mistake:  "A coordinator takes its vote back but does not note the fence that comes with it.",
		Tempting: "The RELEASE is there to free the vote.",
		Wrong:    "The next to enter gets a fence that was given before.",
		Breaks:   process.FencesGrow,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
