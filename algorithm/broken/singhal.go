package broken

import (
	"github.com/conclave-io/conclave/algorithm/mutex/singhal"
	"github.com/conclave-io/conclave/process"
)

var ofSinghal = of(singhal.Spec, []Variant{
	{
		Name:     "singhal-printed",
		Spec:     SinghalPrinted,
		Mistake:  "No process asks again, as the algorithm is commonly printed.",
		Tempting: "The heuristic finds the token in most runs, and links keep their order.",
		Wrong:    "A REQ that the token overtakes is dropped as old, and its sender waits forever.",
		Breaks:   process.Progress,
		Bounds:   Bounds{N: 3, Entries: 2, Alone: true},
	},
	{
		Name:     "singhal-gives-while-inside",
		New:      singhal.Flaw{GivesInside: true}.New,
		Mistake:  "The holder sends the token to a process that asks, even while it is inside.",
		Tempting: "The token is here, and the other process wants it.",
		Wrong:    "The receiver enters while the sender is still inside.",
		Breaks:   process.MutualExclusion,
		Bounds:   Bounds{N: 2, Entries: 1},
	},
})

// SinghalPrinted is Singhal's heuristic as commonly printed: the rules of package
// singhal without R6 and without withdrawal.
//
//	R1  request: if the token is here, enter. Otherwise increase SN[i], send REQ
//	    to every process with SV = R, and wait.
//	R2  on REQ(sn) from j, unless sn is old: note sn and that j is R. If i is R
//	    and did not know that j is R, send REQ to j. If i is H, send j the token.
//	R3  on TOKEN: enter.
//	R4  release: for every j, if SN[j] > TSN[j] the token learns from the holder,
//	    otherwise the holder from the token.
//	R5  then the token goes to the next process that is R, or stays.
//
// It is safe: there is one token. But a process may wait forever. Let 3 ask 1 and 2, be
// served through 1, and ask again while its first REQ to 2 is still in flight. Its
// second REQ goes only to the processes that it knows to be R. Suppose the token then
// reaches 2 through a process that has not heard of the second request. R4 tells 2 that
// 3 was served: 2 forgets it, keeps the token, and drops the slow REQ as old. The
// script testdata/scripts/singhal-printed/lost_request is that run; links keep their
// order in it.
//
// With causal delivery the slow REQ would arrive before the token. The algorithm
// singhal does not need that: there a process that waits long asks all others. The cost
// is that of singhal, in runs that lose nothing.
//
// Sources: M. Singhal, A heuristically-aided algorithm for mutual exclusion in
// distributed systems, 1989. [D4] names it and gives no rules.
var SinghalPrinted = &process.Spec{
	Name:      "singhal-printed",
	Title:     "Singhal's heuristic as commonly printed, which loses a request",
	Paper:     singhal.Spec.Paper,
	Documents: singhal.Spec.Documents,
	Family:    process.Mutex,
	Messages:  singhal.Spec.Messages,
	Timers:    singhal.Spec.Timers,
	Rules:     singhal.Spec.Rules[:len(singhal.Spec.Rules)-2],
	Needs:     singhal.Spec.Needs,
	Claims:    singhalPrintedClaims,
	New:       singhal.Flaw{NoRetry: true}.New,
}

var singhalPrintedClaims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.FencesGrow},
		{Property: process.OneToken},
		{Property: process.Progress, Fails: true,
			When: "a REQ that the token overtakes is dropped as old; only causal delivery prevents it"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle, Lo: process.Constant("0", 0), Hi: processes},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "0 for the holder, else 2", Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
	},
	Survives: []process.Survival{
		{Fault: process.CrashBystander, How: "it does not answer; the token goes only to processes that request"},
	},
}

var processes = process.PerProcess("N", 1)
