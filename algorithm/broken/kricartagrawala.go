package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/kricartagrawala"
	"github.com/conclave-io/conclave/process"
)

var ofKRicartAgrawala = []Variant{
	{
		Name:     "k-ricart-agrawala-forgets-debts",
		Of:       kricartagrawala.Spec,
		New:      kricartagrawala.Flaw{ForgetsDebts: true}.New,
		Mistake:  "A new request forgets which answers to earlier ones are still missing.",
		Tempting: "Each request is a separate round, and the old one was granted without them.",
		Wrong:    "A late answer counts for the new request, and lets one process too many in.",
		Breaks:   process.AtMostK,
		Bounds:   Bounds{N: 3, Entries: 2},
	},
	{
		Name:     "k-ricart-agrawala-enters-early",
		Of:       kricartagrawala.Spec,
		New:      kricartagrawala.Flaw{EntersEarly: true}.New,
		Mistake:  "A process waits for N-1-k answers, counting N others instead of N-1.",
		Tempting: "With k units, k of the N-1 others may be inside.",
		Wrong:    "The process itself needs a unit, too: k+1 are inside.",
		Breaks:   process.AtMostK,
		Bounds:   Bounds{N: 3, Entries: 1},
	},
}
