package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawala"
	"github.com/conclave-io/conclave/process"
)

var ofRicartAgrawala = []Variant{
	{
		Name:     "ricart-agrawala-no-tie-break",
		Of:       ricartagrawala.Spec,
		New:      ricartagrawala.Flaw{NoTieBreak: true}.New,
		Mistake:  "Requests are compared by their times alone, as in [D0]; a request with the same time as the receiver's own is answered.",
		Tempting: "The rule mentions only the lower timestamp, and ties seem to be rare.",
		Wrong:    "Two processes that ask at once have equal times and permit each other.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "ricart-agrawala-deaf-clock",
		Of:       ricartagrawala.Spec,
		New:      ricartagrawala.Flaw{DeafClock: true}.New,
		Mistake:  "The clock counts only the process's own requests, and requests of others do not raise it.",
		Tempting: "A counter is also a logical time, and the comparison does the rest.",
		Wrong:    "A process permits a request and then makes an older one, which is permitted as well.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
}
