package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/tokenring"
	"github.com/conclave-io/conclave/process"
)

var ofTokenRing = []Variant{
	{
		Name:     "token-ring-accepts-copies",
		Of:       tokenring.Spec,
		New:      tokenring.Flaw{AcceptsCopies: true}.New,
		Mistake:  "A process accepts every TOKEN, even a duplicate.",
		Tempting: "There is only one token, so it need not be numbered.",
		Wrong:    "A TOKEN that the link duplicates is a second token.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
	{
		Name:     "token-ring-makes-tokens",
		Of:       tokenring.Spec,
		New:      tokenring.Flaw{MakesTokens: true}.New,
		Mistake:  "A process that has waited very long makes a new token, without an election.",
		Tempting: "Some process must, and a round should be over by now.",
		Wrong:    "The time that others stay inside has no bound: the old token may still exist.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, AnyTime: true},
	},
}
