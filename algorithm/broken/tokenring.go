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
		Mistake:  "A process takes every TOKEN, whether or not it has had it before.",
		Tempting: "There is only one token, so it need not be numbered.",
		Wrong:    "A TOKEN that the link repeats is a second one.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 2, Duplicates: 1},
	},
	{
		Name:     "token-ring-makes-tokens",
		Of:       tokenring.Spec,
		New:      tokenring.Flaw{MakesTokens: true}.New,
		Mistake:  "A process that has waited very long makes a new token, without an election.",
		Tempting: "Somebody must, and a round should long be over.",
		Wrong:    "How long the others stay inside has no bound: the old token may still be there.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, AnyTime: true},
	},
}
