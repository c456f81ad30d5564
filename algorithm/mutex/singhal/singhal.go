// Package singhal is mutual exclusion by a token that is looked for only where it
// probably is.
//
// # Problem and idea
//
// As in Suzuki and Kasami's algorithm the process that has the token may enter. But a
// request does not go to every process. Each process remembers what it last heard of
// every other (state vector SV) and how recent that is (sequence numbers SN). It asks
// only the processes that seem to want the token, because one of them has it or will
// have it. The token carries the same two vectors (TSV, TSN), so that its holder and
// the token correct each other.
//
// SV has a state for each process: N, it wants nothing; R, it requests; E, it is inside;
// H, it holds the token and is not inside. About other processes, a process knows only N
// or R.
//
// # Rules
//
//	R1  request: if the token is here, enter. Otherwise increase SN[i], send REQ to
//	    every process with SV = R, and wait.
//	R2  on REQ(sn) from j:
//	    R2a sn is not newer than SN[j]: ignore it.
//	    R2b i is N or E: note sn, and that j is R.
//	    R2c i is R: the same. If j was not known to be R, i has not asked it yet and
//	        asks it now.
//	    R2d i is H: note it in the token too, and send j the token.
//	R3  on TOKEN: enter.
//	R4  release: i is N. For every j, if SN[j] > TSN[j] the token learns from the
//	    holder, otherwise the holder learns from the token.
//	R5  then the token goes to the first j after i, around the circle of ranks,
//	    that is R. If there is none the token stays, and i is H.
//	R6  retry: a process that has waited long sends its REQ to all others.
//
// At the start each rank believes that all lower ranks request, and no others; rank 0
// has the token. (If another process has it, ranks are counted from there.) So of any
// two processes, one would ask the other. Rules R1 and R2 keep that true.
//
// # Why it is safe
//
// There is one token, and only the process that has it enters. Only R2d and R5 send it
// away, from a process that is not inside, and the sender then no longer has it. Its
// counter numbers the entries, so fences grow.
//
// # Cost
//
// Idle: one message for each process that has entered since this process's last entry,
// and the token: from 0 (the holder again) to N. The average is (N+1)/2 - 1/N if all
// processes are equally likely to ask. Saturated: N. Client delay two message times, or
// none for the holder; synchronization delay one.
//
// # Assumptions and deviations
//
// Links lose and duplicate nothing; order does not matter. No process that waits or has
// the token crashes. As commonly printed, without R6, the algorithm also needs causal
// delivery. R4 may treat a process as served whose newer request is still in flight;
// R2a then drops that request as old, and the process waits forever (the algorithm
// singhal-printed shows such a run). R6 repairs this. No process drops the newest
// request of a waiting process, because none has seen it served, and one of the
// processes asked has the token or will get it. R2a makes the repetition idempotent,
// and no message is sent unless a process waits for more than five full rounds.
//
// A request may be withdrawn. If the token comes after that, it is passed on as after
// an exit.
//
// Sources: M. Singhal, A heuristically-aided algorithm for mutual exclusion in
// distributed systems, 1989. [D4] lists it among the token algorithms and gives no
// rules.
package singhal

import "github.com/conclave-io/conclave/process"

// Spec describes the algorithm.
var Spec = &process.Spec{
	Name:      "singhal",
	Title:     "Singhal's heuristic",
	Paper:     "M. Singhal: A heuristically-aided algorithm for mutual exclusion in distributed systems, IEEE Transactions on Computers 38(5), 1989, doi:10.1109/12.24268",
	Documents: []string{"[D4]"},
	Family:    process.Mutex,
	Messages: []process.MessageSpec{
		{Name: "REQ", Fields: []process.FieldUse{{Field: process.FieldSeq, Symbol: "sn"}}},
		{Name: "TOKEN", Fields: []process.FieldUse{
			{Field: process.FieldIDs, Symbol: "TSV"}, // the processes that are R; all others are N
			{Field: process.FieldVector, Symbol: "TSN"},
			{Field: process.FieldFence, Symbol: "fence"}}},
	},
	Timers: []string{"retry"},
	Rules: []process.RuleSpec{
		{Name: "R1", Text: "request: number it, send REQ to the processes that seem to request"},
		{Name: "R1b", Text: "request while the token is here: enter"},
		{Name: "R2a", Text: "REQ that is not newer than what is known: ignore"},
		{Name: "R2b", Text: "REQ: note it"},
		{Name: "R2c", Text: "REQ while requesting, from a process that was not asked: ask it"},
		{Name: "R2d", Text: "REQ while the token is here and unused: send the token"},
		{Name: "R3", Text: "TOKEN: enter"},
		{Name: "R3b", Text: "TOKEN for a request that was withdrawn: go on as after a release"},
		{Name: "R4", Text: "release: holder and token learn from each other"},
		{Name: "R5", Text: "the token goes to the next process that requests"},
		{Name: "R5b", Text: "no process requests: keep the token"},
		{Name: "R6", Text: "the token has not come for a long time: send REQ to all others"},
		{Name: "R7", Text: "withdraw a request"},
	},
	Needs:   process.Needs{Reliable: true, NoDuplication: true},
	Claims:  claims,
	Cancels: true,
	New:     Flaw{}.New,
}

var claims = process.Claims{
	Properties: []process.Claim{
		{Property: process.MutualExclusion},
		{Property: process.FencesGrow},
		{Property: process.OneToken},
		{Property: process.Progress, When: "no request stays in flight forever"},
		{Property: process.OrderHappenedBefore, Fails: true,
			When: "the token goes around by rank, not by the time of requests"},
	},
	Costs: []process.Cost{
		{Metric: process.MessagesPerEntry, Regime: process.Idle,
			When: "0 for the holder; else 1 + the number of others that have entered since its own last entry",
			Lo:   process.Constant("0", 0), Hi: processes,
			Mean: process.OfN("(N+1)/2 - 1/N", func(n float64) float64 { return (n+1)/2 - 1/n })},
		{Metric: process.MessagesPerEntry, Regime: process.Saturated, When: "N >= 2", Exact: processes},
		{Metric: process.ClientDelay, Regime: process.Idle, When: "0 for the holder, else 2", Lo: process.Constant("0", 0), Hi: process.Constant("2", 2)},
		{Metric: process.SyncDelay, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
		{Metric: process.Throughput, Regime: process.Saturated, When: "N >= 2", Exact: process.Constant("1", 1)},
	},
	Survives: []process.Survival{
		{Fault: process.Reorder, How: "sequence numbers, and R6"},
		{Fault: process.CrashBystander, How: "it does not answer; the token goes only to processes that request"},
	},
}

var processes = process.PerProcess("N", 1)

const (
	req process.Type = iota + 1
	token
)

const retryTimer process.Timer = 1

const (
	ruleR1 process.Rule = iota + 1
	ruleR1b
	ruleR2a
	ruleR2b
	ruleR2c
	ruleR2d
	ruleR3
	ruleR3b
	ruleR4
	ruleR5
	ruleR5b
	ruleR6
	ruleR7
)
