package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/ricartagrawalatoken"
	"github.com/conclave-io/conclave/process"
)

var ofRicartAgrawalaToken = []Variant{
	{
		Name:     "ricart-agrawala-token-no-tick",
		Of:       ricartagrawalatoken.Spec,
		New:      ricartagrawalatoken.Flaw{NoTick: true}.New,
		Mistake:  "A request is stamped with the clock as it stands, as in [D4].",
		Tempting: "It carries the value of the clock; nothing says that the clock must tick first.",
		Wrong:    "The first request carries 0, which is not later than the 0 in the token, and is never served.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
	{
		Name:     "ricart-agrawala-token-gives-while-inside",
		Of:       ricartagrawalatoken.Spec,
		New:      ricartagrawalatoken.Flaw{GivesInside: true}.New,
		Mistake:  "The holder sends the token to a process that asks, even while it is inside.",
		Tempting: "The request is open and the token is here, so the token should be sent.",
		Wrong:    "The receiver enters while the sender is still inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
}
