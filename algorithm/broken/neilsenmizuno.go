package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/neilsenmizuno"
	"github.com/conclave-io/conclave/process"
)

var ofNeilsenMizuno = []Variant{
	{
		Name:     "neilsen-mizuno-holds-inside",
		Of:       neilsenmizuno.Spec,
		New:      neilsenmizuno.Flaw{HoldsInside: true}.New,
		Mistake:  "A process that enters with a token that was here already does not mark it as used.",
		Tempting: "The token is still here while the process is inside.",
		Wrong:    "A request that arrives meanwhile gets the token at once, and two processes are inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1, Alone: true},
	},
	{
		Name:     "neilsen-mizuno-relays-keep",
		Of:       neilsenmizuno.Spec,
		New:      neilsenmizuno.Flaw{RelaysKeep: true}.New,
		Mistake:  "A process that passes a request on keeps its pointer.",
		Tempting: "It does not ask itself, and its pointer leads to the token.",
		Wrong:    "The process that asked last is elsewhere now. A later request goes to one that has another behind it already, or comes back, and one of them waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 1, Alone: true},
	},
}
